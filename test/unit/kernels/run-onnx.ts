/** Owns the running of a model's bytes in the test's own process. */
import { create, toBinary } from '@bufbuild/protobuf';
import * as ort from 'onnxruntime-node';
import type { GraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import { ModelProtoSchema } from '../../../src/kernels/onnx/onnx_pb.ts';
import type { GraphProto } from '../../../src/kernels/onnx/onnx_pb.ts';

process.env['ORT_DISABLE_TELEMETRY'] = '1';

/** A nested list of numbers with the same lengths everywhere. */
export type Nested = number | readonly Nested[];

/** Lengths of a nested list. */
export function dimsOf(values: Nested): number[] {
  return typeof values === 'number' ? [] : [values.length, ...(values[0] === undefined ? [] : dimsOf(values[0]))];
}

/** All numbers of a nested list, in order. */
export const flatten = (values: Nested): number[] => (typeof values === 'number' ? [values] : values.flatMap(flatten));

/** A float32 tensor. */
export const floatTensor = (values: Nested): ort.Tensor =>
  new ort.Tensor('float32', Float32Array.from(flatten(values)), dimsOf(values));

/** A single truth value. */
export const boolTensor = (value: boolean): ort.Tensor => new ort.Tensor('bool', Uint8Array.of(value ? 1 : 0), []);

/** An int64 tensor. */
export const intTensor = (values: Nested): ort.Tensor =>
  new ort.Tensor('int64', BigInt64Array.from(flatten(values).map(BigInt)), dimsOf(values));

/** Bytes of a model that holds what the builder collected, after `change`. */
export function encodeModel(builder: GraphBuilder, change: (graph: GraphProto) => void = () => undefined): Uint8Array {
  const graph = builder.build();
  change(graph);
  return toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, {
      irVersion: 7n,
      opsetImport: [{ domain: '', version: BigInt(builder.opset) }],
      graph: { ...graph, name: 'test' },
    }),
  );
}

/** One output of a model, as numbers and dimensions. */
export interface Output {
  readonly values: number[];
  readonly dims: readonly number[];
}

/** What a model is run on. */
export type Engine = 'cpu' | 'webgpu';

const providers: Readonly<Record<Engine, ort.InferenceSession.ExecutionProviderConfig>> = {
  cpu: 'cpu',
  webgpu: { name: 'webgpu' },
};

/** The named outputs of one run; all of them where none is named. */
export async function runModel(
  model: Uint8Array | string,
  feeds: Record<string, ort.Tensor>,
  outputs?: readonly string[],
  engine: Engine = 'cpu',
): Promise<Record<string, Output>> {
  const options = { executionProviders: [providers[engine]], intraOpNumThreads: 1, logSeverityLevel: 3 } as const;
  const session = await (typeof model === 'string'
    ? ort.InferenceSession.create(model, options)
    : ort.InferenceSession.create(model, options));
  try {
    const results = await session.run(feeds, outputs ?? session.outputNames);
    return Object.fromEntries(
      Object.entries(results).map(([name, tensor]) => [
        name,
        { values: Array.from(tensor.data as Float32Array, Number), dims: tensor.dims },
      ]),
    );
  } finally {
    await session.release();
  }
}

/** Largest absolute difference of two equally long lists; NaN and other lengths count as infinite. */
export function maxDifference(left: readonly number[], right: readonly number[]): number {
  if (left.length !== right.length) return Infinity;
  const differences = left.map((value, index) => Math.abs(value - (right[index] ?? NaN)));
  return differences.some(Number.isNaN) ? Infinity : Math.max(0, ...differences);
}

/** Cosine of two vectors. */
export function cosine(left: ArrayLike<number>, right: ArrayLike<number>): number {
  let [product, leftSquares, rightSquares] = [0, 0, 0];
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    const [a, b] = [left[index] ?? 0, right[index] ?? 0];
    product += a * b;
    leftSquares += a * a;
    rightSquares += b * b;
  }
  return product / Math.sqrt(leftSquares * rightSquares);
}
