/** Owns the prepared graphs: each model's file, converted where it must be, with its heads, kept in the cache folder. */
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import { ConfigurationError } from '../errors.ts';
import { headOutputs } from '../executor/protocol.ts';
import type { ModelLoad } from '../executor/protocol.ts';
import { maxSimModel } from '../kernels/max-sim/graph.ts';
import { ModelProtoSchema } from '../kernels/onnx/onnx_pb.ts';
import { ensureCacheFile, ensureCacheLink } from './cache-file.ts';
import { convertFile } from './convert/converted-file.ts';
import type { CompanionFile, ConvertedFile } from './convert/converted-file.ts';
import { concatBytes, memoryBytes } from './convert/lazy-bytes.ts';
import type { LazyBytes } from './convert/lazy-bytes.ts';
import { splitAtQuantize } from './convert/steps.ts';
import { gather, refuse } from './gather.ts';
import { thisCpu } from './graph-variant.ts';
import type { DeviceAbilities } from './graph-variant.ts';
import { headOptionsFor, headTensors, shapeProblems, sparseOutputOf } from './head-needs.ts';
import type { HeadOptions } from './head-needs.ts';
import { encodeHeads } from './heads.ts';
import { fileErrorCode } from './json-file.ts';
import { loadIdOf, type ModelManifest } from './manifest.ts';
import { readTensors } from './weights/tensor-file.ts';

/** Digits of a hash in a file name. */
const nameDigits = 12;

/** A hash of what is appended, which changes with the heads and with every kernel. */
const shortHash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex').slice(0, nameDigits);

/** Runs what writes to a cache file, and names the setting where that fails. */
async function provide(path: string, write: () => Promise<void>): Promise<string> {
  try {
    await write();
  } catch (error) {
    const code = fileErrorCode(error);
    if (code === '') throw error;
    throw new ConfigurationError([
      `cache-dir: ${path} cannot be written (${code}); set it to a folder that can be written and has room`,
    ]);
  }
  return path;
}

/** The path of a cache file that surely is there. */
function provideFile(cacheDir: string, name: string, content: LazyBytes): Promise<string> {
  const path = join(cacheDir, name);
  return provide(path, () => ensureCacheFile(path, content));
}

/** A file beside a graph; it is there before the graph is, so that no graph is ever without it. */
function provideCompanion(cacheDir: string, companion: CompanionFile): Promise<string> {
  if ('content' in companion) return provideFile(cacheDir, companion.name, companion.content);
  const path = join(cacheDir, companion.name);
  return provide(path, () => ensureCacheLink(path, companion.sourcePath));
}

async function provideGraph(cacheDir: string, name: string, file: ConvertedFile, added: Uint8Array): Promise<string> {
  for (const companion of file.companions) await provideCompanion(cacheDir, companion);
  return provideFile(cacheDir, name, concatBytes([file.graphFile, memoryBytes(added)]));
}

const joinName = (...parts: readonly string[]): string => parts.filter((part) => part !== '').join('-');

/** A name that only this model and these weights have; a repository id has a slash. */
const baseName = ({ modelId, revision }: ModelManifest): string => `${modelId.replaceAll('/', '--')}-${revision}`;

/**
 * The path of a model's int8 graph without heads, made where it is not there yet.
 * @throws ConfigurationError where it cannot be made or written
 */
export async function prepareQuantized(model: ModelManifest, cacheDir: string): Promise<string> {
  const { first } = splitAtQuantize(model.conversion ?? []);
  const file = await convertFile(model.graphPath, first, baseName(model));
  return provideGraph(cacheDir, `${joinName(baseName(model), file.label)}.onnx`, file, new Uint8Array(0));
}

async function prepareModel(model: ModelManifest, cacheDir: string, options: HeadOptions): Promise<ModelLoad> {
  const { first, rest } = splitAtQuantize(model.conversion ?? []);
  // Quantising takes long enough to be kept by itself, for whatever heads are asked for later.
  const sourcePath = first.length === 0 ? model.graphPath : await prepareQuantized(model, cacheDir);
  const name = first.length === 0 ? baseName(model) : basename(sourcePath, '.onnx');
  const file = await convertFile(sourcePath, rest, name);
  const tensors = await readTensors(headTensors(model));
  refuse(shapeProblems(model, tensors));
  const heads = encodeHeads(file.graph, model, tensors, options);
  const maxSim = toBinary(ModelProtoSchema, maxSimModel(headOutputs.maxSim));
  return {
    modelId: loadIdOf(model),
    graphPath: await provideGraph(cacheDir, `${joinName(name, file.label, shortHash(heads))}.onnx`, file, heads),
    heads: model.heads,
    ...(model.hiddenOutput === undefined ? {} : { hiddenOutput: model.hiddenOutput }),
    vocabularySize: model.vocabularySize,
    maxTokens: model.maxTokens,
    precision: model.precision,
    maxSimGraphPath: model.heads.includes('maxSim')
      ? await provideFile(cacheDir, `max-sim-${shortHash(maxSim)}.onnx`, memoryBytes(maxSim))
      : null,
    runPolicy: model.runPolicy,
    positionPadId: model.inputs.positionPadId,
    sparse: sparseOutputOf(model, options),
  };
}

/**
 * What an executor needs to load each model; the prepared graphs are in `cacheDir` afterwards.
 * @throws ConfigurationError where a graph is neither there nor can be made and written
 */
export function prepareModels(
  models: readonly ModelManifest[],
  cacheDir: string,
  device: DeviceAbilities = thisCpu,
): Promise<ModelLoad[]> {
  const options = headOptionsFor(device);
  return gather(models.map((model) => prepareModel(model, cacheDir, options)));
}
