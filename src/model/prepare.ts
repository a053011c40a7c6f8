/** Owns the prepared graphs: each model's file with its heads appended, kept in the cache folder. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import { ConfigurationError } from '../errors.ts';
import { headOutputs } from '../executor/protocol.ts';
import type { ModelLoad } from '../executor/protocol.ts';
import { maxSimModel } from '../kernels/max-sim/graph.ts';
import { ModelProtoSchema } from '../kernels/onnx/onnx_pb.ts';
import { ensureCacheFile } from './cache-file.ts';
import type { CacheContent } from './cache-file.ts';
import { gather } from './gather.ts';
import { readGraph } from './graph-file.ts';
import { encodeHeads } from './heads.ts';
import { fileErrorCode } from './json-file.ts';
import type { ModelManifest } from './manifest.ts';

/** Digits of a hash in a file name. */
const nameDigits = 12;

/** A hash of what is appended, which changes with the heads and with every kernel. */
const shortHash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex').slice(0, nameDigits);

/** The path of a cache file that surely is there. */
async function provide(cacheDir: string, name: string, content: CacheContent): Promise<string> {
  const path = join(cacheDir, name);
  try {
    await ensureCacheFile(path, content);
  } catch (error) {
    const code = fileErrorCode(error);
    if (code === '') throw error;
    throw new ConfigurationError([
      `cache-dir: ${path} cannot be written (${code}); set it to a folder that can be written and has room`,
    ]);
  }
  return path;
}

async function prepareModel(model: ModelManifest, cacheDir: string): Promise<ModelLoad> {
  const heads = encodeHeads(await readGraph(model.graphPath), model);
  const name = `${model.modelId}-${model.sha256.slice(0, nameDigits)}-${shortHash(heads)}.onnx`;
  const maxSim = toBinary(ModelProtoSchema, maxSimModel(headOutputs.maxSim));
  return {
    modelId: model.modelId,
    graphPath: await provide(cacheDir, name, { sourcePath: model.graphPath, bytes: heads }),
    heads: model.heads,
    vocabularySize: model.vocabularySize,
    maxTokens: model.maxTokens,
    precision: model.precision,
    maxSimGraphPath: model.heads.includes('maxSim')
      ? await provide(cacheDir, `max-sim-${shortHash(maxSim)}.onnx`, { sourcePath: null, bytes: maxSim })
      : null,
  };
}

/**
 * What an executor needs to load each model; the prepared graphs are in `cacheDir` afterwards.
 * @throws ConfigurationError where a graph is neither there nor can be written
 */
export function prepareModels(models: readonly ModelManifest[], cacheDir: string): Promise<ModelLoad[]> {
  return gather(models.map((model) => prepareModel(model, cacheDir)));
}
