/** Owns the one score of a classifier with two labels as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';

/**
 * The logit of one entry minus that of another. Its sigmoid is the share of the first in the softmax over the two.
 * @shape f32 [batch, entries] -> f32 [batch, 1]
 */
export function labelLogit(builder: GraphBuilder, logits: string, positive: number, negative: number): string {
  const entry = (index: number): string => builder.node('Gather', [logits, builder.ints([index])], { axis: 1 });
  return builder.node('Sub', [entry(positive), entry(negative)]);
}
