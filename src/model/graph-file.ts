/** Owns the choice of a model's graph file and the proof that it is whole. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ConfigurationError } from '../errors.ts';
import type { GraphDescription } from '../kernels/onnx/read.ts';
import type { CatalogEntry } from './catalog.ts';
import { describeConverted } from './convert/describe.ts';
import { isSlowOnCpu } from './convert/fit-cpu.ts';
import { planPrecision } from './convert/plan.ts';
import type { ConversionStep } from './convert/steps.ts';
import { possibleVariants } from './graph-variant.ts';
import type { DeviceAbilities, GraphVariant } from './graph-variant.ts';
import { fileErrorCode } from './json-file.ts';
import type { Precision } from './manifest.ts';
import { isDynamicallyQuantized } from './run-policy.ts';

/** The graph file in use, whole and read. */
export interface GraphFile {
  readonly path: string;
  /** What is served, after the conversions. */
  readonly precision: Precision;
  readonly conversions: readonly ConversionStep[];
  readonly sha256: string;
  /** The file's own, or one over it and the files that hold its weights. */
  readonly contentSha256: string;
  /** What the graph says about itself after the conversions. */
  readonly graph: GraphDescription;
}

/** What a graph file is chosen by. */
export interface GraphChoice {
  readonly wanted: Precision | 'auto';
  readonly device: DeviceAbilities;
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

/** The precision that a graph's weights have. */
function precisionIn(graph: GraphDescription): Precision {
  if (isDynamicallyQuantized(graph)) return 'int8';
  return graph.weightType === 'float16' ? 'fp16' : 'fp32';
}

/** The variant as its file is: a name that promises floats says nothing of their width. */
function readVariant(folder: string, variant: GraphVariant): GraphVariant {
  if (variant.precision === 'int8' || variant.precision === '4bit') return variant;
  try {
    const graph = describeConverted(join(folder, variant.path), []);
    const slow = isSlowOnCpu(graph.operators) ? { isSlowOnCpu: true } : {};
    const read = { path: variant.path, precision: precisionIn(graph), ...slow };
    return graph.hasFunctions ? { ...read, isNarrowable: false } : read;
  } catch (error) {
    // Whoever takes the file is told what is wrong with it.
    if (error instanceof ConfigurationError) return variant;
    throw error;
  }
}

/**
 * The graph files that a folder has, in the order of `possibleVariants`.
 * @throws ConfigurationError
 */
export async function findVariants(folder: string, ownPath: string | null, arch: string): Promise<GraphVariant[]> {
  const found: GraphVariant[] = [];
  for (const variant of possibleVariants(ownPath, arch)) {
    if ((await sizeOf(join(folder, variant.path))) !== null) found.push(readVariant(folder, variant));
  }
  return found;
}

/** A hash over a graph file and the files that hold its weights. */
async function contentHash(path: string, sha256: string, externalFiles: readonly string[]): Promise<string> {
  if (externalFiles.length === 0) return sha256;
  const hash = createHash('sha256').update(sha256);
  for (const file of externalFiles) hash.update(await readOrRefuse(join(dirname(path), file), sha256Of));
  return hash.digest('hex');
}

/**
 * The graph file for a precision on a device, and what is done to it first.
 * @throws ConfigurationError where there is none, or where it is not the file that the catalogue knows
 */
export async function findGraphFile(
  folder: string,
  { wanted, device }: GraphChoice,
  catalog: CatalogEntry,
): Promise<GraphFile> {
  const plan = planPrecision(await findVariants(folder, catalog.graphPath, device.arch), wanted, device);
  if ('problem' in plan) throw new ConfigurationError([`${folder}: ${plan.problem}`]);
  const path = join(folder, plan.variant.path);
  const sha256 = await readOrRefuse(path, sha256Of);
  const known = catalog.graphFiles[plan.variant.path];
  if (known !== undefined && known.sha256 !== sha256) {
    throw new ConfigurationError([
      `${path}: expected sha256 ${known.sha256} (${String(known.bytes)} bytes), ` +
        `found ${sha256} (${String(await sizeOf(path))} bytes): cut off or changed, get it again`,
    ]);
  }
  const graph = describeConverted(path, plan.steps);
  const contentSha256 = await contentHash(path, sha256, graph.externalFiles);
  return { path, precision: plan.precision, conversions: plan.steps, sha256, contentSha256, graph };
}

async function readOrRefuse<Result>(path: string, read: (path: string) => Promise<Result>): Promise<Result> {
  try {
    return await read(path);
  } catch (error) {
    const code = fileErrorCode(error);
    if (code === '') throw error;
    throw new ConfigurationError([`${path}: ${code === 'ENOENT' ? 'is missing' : `cannot be read (${code})`}`]);
  }
}
