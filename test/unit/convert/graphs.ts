/** Owns small graphs as files, and their way through conversions, for the tests of this folder. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { createGraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import type { GraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import { ModelProtoSchema } from '../../../src/kernels/onnx/onnx_pb.ts';
import type { GraphProto, ModelProto } from '../../../src/kernels/onnx/onnx_pb.ts';
import { encodeModel, maxInlineBytes } from '../../../src/model/convert/encode-model.ts';
import { collectBytes } from '../../../src/model/convert/lazy-bytes.ts';
import { openModel } from '../../../src/model/convert/open-model.ts';
import { convert } from '../../../src/model/convert/steps.ts';
import type { ConversionStep } from '../../../src/model/convert/steps.ts';

/** Operators of onnxruntime's own domain that the graphs of these tests use. */
const contribOperators = new Set(['Attention', 'MultiHeadAttention', 'BiasGelu', 'SkipLayerNormalization']);

/** Bytes of a model in operator set 17; `change` is the last to see it. */
export function modelBytes(
  fill: (builder: GraphBuilder) => void,
  change: (graph: GraphProto, model: ModelProto) => void = () => undefined,
): Uint8Array {
  const builder = createGraphBuilder(17, 'test');
  fill(builder);
  const model = create(ModelProtoSchema, {
    irVersion: 8n,
    opsetImport: [
      { domain: '', version: 17n },
      { domain: 'com.microsoft', version: 1n },
    ],
    graph: { ...builder.build(), name: 'test' },
  });
  for (const node of model.graph?.node ?? []) if (contribOperators.has(node.opType)) node.domain = 'com.microsoft';
  if (model.graph !== undefined) change(model.graph, model);
  return toBinary(ModelProtoSchema, model);
}

/** Runs `use` with a fresh folder, which is gone afterwards. */
export async function withFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'trivec-convert-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The bytes of the model in a file after these steps. */
export async function convertedFile(path: string, steps: readonly ConversionStep[]): Promise<Uint8Array> {
  const open = openModel(path);
  convert(open, steps);
  const { graphFile } = encodeModel(open, { dataFileName: 'unused.data', maxInlineBytes });
  return collectBytes(graphFile);
}

/** The bytes of a model after these steps. */
export const converted = (bytes: Uint8Array, steps: readonly ConversionStep[]): Promise<Uint8Array> =>
  withFolder(async (folder) => {
    const path = join(folder, 'model.onnx');
    await writeFile(path, bytes);
    return convertedFile(path, steps);
  });

/** The graph in the bytes of a model. */
export function graphOf(bytes: Uint8Array): GraphProto {
  const { graph } = fromBinary(ModelProtoSchema, bytes);
  if (graph === undefined) throw new Error('no graph');
  return graph;
}

/** How often each operator occurs. */
export function countOperators(bytes: Uint8Array): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { opType } of graphOf(bytes).node) counts[opType] = (counts[opType] ?? 0) + 1;
  return counts;
}

/** Numbers from -1 to 1, the same each time. */
export function numbers(count: number, seed = 1, scale = 1): Float32Array {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return ((state >>> 8) / 2 ** 23 - 1) * scale;
  });
}
