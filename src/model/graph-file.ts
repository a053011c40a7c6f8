/** Owns the choice of a model's graph file and the proof that it is whole. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ConfigurationError } from '../errors.ts';
import { describeGraph } from '../kernels/onnx/read.ts';
import type { GraphDescription } from '../kernels/onnx/read.ts';
import type { CatalogEntry } from './catalog.ts';
import { fileErrorCode } from './json-file.ts';
import type { Precision } from './manifest.ts';

/** Graph files inside a model's folder, the preferred one first. */
export const graphCandidates: readonly { readonly path: string; readonly precision: Precision }[] = [
  { path: 'onnx/model_int8.onnx', precision: 'int8' },
  { path: 'onnx/model_quantized.onnx', precision: 'int8' },
  { path: 'onnx/model_fp16.onnx', precision: 'fp16' },
  { path: 'onnx/model.onnx', precision: 'fp32' },
];

/** The graph file in use, whole and read. */
export interface GraphFile {
  readonly path: string;
  readonly precision: Precision;
  readonly sha256: string;
  readonly graph: GraphDescription;
}

/** Size of a file; null where there is none. */
async function sizeOf(path: string): Promise<number | null> {
  try {
    const entry = await stat(path);
    return entry.isFile() ? entry.size : null;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(fileErrorCode(error))) return null;
    throw new ConfigurationError([`${path}: cannot be read (${fileErrorCode(error)})`]);
  }
}

/** sha256 of a file as hex digits, without holding it in memory. */
export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/**
 * What the graph in a file says about itself.
 * @throws ConfigurationError naming the file where it is cut off or no ONNX model
 */
export async function readGraph(path: string): Promise<GraphDescription> {
  const bytes = await readFile(path);
  try {
    return describeGraph(bytes);
  } catch {
    const size = String(bytes.byteLength);
    throw new ConfigurationError([
      `${path}: is no complete ONNX model (${size} bytes): cut off or damaged, get it again`,
    ]);
  }
}

async function choose(folder: string, wanted: Precision | 'auto') {
  const allowed = graphCandidates.filter(({ precision }) => wanted === 'auto' || precision === wanted);
  for (const { path, precision } of allowed) {
    const bytes = await sizeOf(join(folder, path));
    if (bytes !== null) return { path, precision, bytes };
  }
  const names = allowed.map(({ path }) => path).join(' or ');
  const setting = wanted === 'auto' ? '' : ` for precision ${wanted}`;
  throw new ConfigurationError([`${folder}: has no ${names}${setting}`]);
}

/**
 * The graph file of the wanted precision (`auto`: the first there is of int8, fp16, fp32).
 * @throws ConfigurationError where there is none, or where it is not the file that the catalogue knows
 */
export async function findGraphFile(
  folder: string,
  wanted: Precision | 'auto',
  catalog: CatalogEntry,
): Promise<GraphFile> {
  const chosen = await choose(folder, wanted);
  const path = join(folder, chosen.path);
  const sha256 = await readOrRefuse(path, sha256Of);
  const known = catalog.graphFiles[chosen.path];
  if (known !== undefined && known.sha256 !== sha256) {
    throw new ConfigurationError([
      `${path}: expected sha256 ${known.sha256} (${String(known.bytes)} bytes), ` +
        `found ${sha256} (${String(chosen.bytes)} bytes): cut off or changed, get it again`,
    ]);
  }
  return { path, precision: chosen.precision, sha256, graph: await readOrRefuse(path, readGraph) };
}

async function readOrRefuse<Result>(path: string, read: (path: string) => Promise<Result>): Promise<Result> {
  try {
    return await read(path);
  } catch (error) {
    if (fileErrorCode(error) === '') throw error;
    throw new ConfigurationError([`${path}: cannot be read (${fileErrorCode(error)})`]);
  }
}
