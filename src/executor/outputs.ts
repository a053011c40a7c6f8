/** Owns the output tensors of a run: float32 numbers whose rows are found by the text they belong to. */
import type { Tensor } from 'onnxruntime-node';
import { widenFloat16 } from '../tensor/float16.ts';
import type { PlannedRun } from './plan.ts';
import type { Matrix } from './protocol.ts';

/** One output of a run of several texts. */
export interface Output {
  /** @shape f32 [texts, …] */
  readonly values: Float32Array;
  readonly dims: readonly number[];
}

/**
 * The numbers of an output as float32.
 * @throws Error where it holds neither float32 nor float16
 */
export function readOutput(name: string, tensor: Tensor | undefined): Output {
  if (tensor === undefined) throw new Error(`the graph gave no output ${name}`);
  const { data, dims } = tensor;
  if (data instanceof Float32Array) return { values: data, dims };
  if (tensor.type === 'float16' && ArrayBuffer.isView(data)) return { values: widenFloat16(data), dims };
  throw new Error(`the output ${name} is not float32`);
}

/**
 * The numbers of one text. @shape f32 [texts, …] -> f32 […]
 * @throws Error where the output is not one of so many texts
 */
export function textValues({ values, dims }: Output, index: number, texts: number): Float32Array {
  if (dims[0] !== texts || values.length % texts !== 0) {
    throw new Error(`the graph gave an output of shape [${dims.join(', ')}] for ${texts} texts`);
  }
  const size = values.length / texts;
  return values.subarray(index * size, (index + 1) * size);
}

/**
 * The rows of one text's tokens, without those of its padding. @shape f32 [texts, tokens, width] -> f32 [rows, width]
 * @throws Error where the output does not have a row for every token
 */
export function tokenRows(
  output: Output,
  index: number,
  { texts, tokens }: Pick<PlannedRun, 'texts' | 'tokens'>,
  rows: number,
): Matrix {
  const values = textValues(output, index, texts);
  const dimension = output.dims.length > 2 ? (output.dims.at(-1) ?? 1) : 1;
  if (values.length !== tokens * dimension) {
    throw new Error(`the graph gave an output of shape [${output.dims.join(', ')}] for rows of ${tokens} tokens`);
  }
  return { values: values.subarray(0, rows * dimension), dimension };
}
