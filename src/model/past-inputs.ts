/** Owns the inputs for the cache of a decoder: an encoder pass has nothing in it, so they get an empty default. */
import { elementTypes } from '../kernels/onnx/builder.ts';
import type { GraphDescription, GraphValue } from '../kernels/onnx/read.ts';

/** Names that exporters give to the keys and values of earlier tokens. */
const pastName = /^past(?:_key_values|_key|_value)?[._]/u;

/** Inputs that hold what a decoder has read before. @shape f32 or f16 [batch, heads, 0, width] */
export const pastInputs = ({ inputs }: Pick<GraphDescription, 'inputs'>): GraphValue[] =>
  inputs.filter(
    ({ name, elementType, shape }) =>
      pastName.test(name) &&
      shape?.length === 4 &&
      ([elementTypes.float32, elementTypes.float16] as number[]).includes(elementType),
  );

/** Lengths of an empty cache for one text: what is free is the batch, which comes first, and the tokens. */
export const emptyPastShape = ({ shape }: GraphValue): number[] =>
  (shape ?? []).map((length, axis) => (typeof length === 'number' && length > 0 ? length : axis === 0 ? 1 : 0));
