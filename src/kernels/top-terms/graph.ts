/** Owns the heaviest terms of a sparse vector as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { elementTypes } from '../onnx/builder.ts';

/** Names of the two tensors that hold the heaviest terms. */
export interface TopTerms {
  /** @shape f32 [batch, terms], descending */
  readonly weights: string;
  /** Term ids as float32, which holds every vocabulary below 2^24 exactly. @shape f32 [batch, terms] */
  readonly ids: string;
}

/**
 * The `terms` largest weights of each text and where they stand. Where the last of them is not zero, terms are
 * missing, and the full row must be taken.
 * @shape f32 [batch, vocabulary] -> f32 [batch, terms], f32 [batch, terms]
 */
export function topTerms(builder: GraphBuilder, weights: string, terms: number): TopTerms {
  const attributes = { axis: -1, largest: 1, sorted: 1 };
  const [values = '', positions = ''] = builder.nodes('TopK', [weights, builder.ints([terms])], 2, attributes);
  return { weights: values, ids: builder.node('Cast', [positions], { to: elementTypes.float32 }) };
}
