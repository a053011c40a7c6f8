/** Owns the weight of each token (lexical weights) as an ONNX sub-graph. */
import { dense } from '../dense/graph.ts';
import type { GraphBuilder } from '../onnx/builder.ts';

/**
 * relu(row * weight + bias) for each token row. Weights of padding come along, as do those of special tokens and of
 * tokens that occur again: who asked for the run knows the ids, and merges by the largest.
 * @shape f32 [batch, sequence, hidden], f32 [hidden], f32 [1] -> f32 [batch, sequence]
 * @source BGE M3-Embedding (Chen et al. 2024), section 3.2, lexical retrieval
 */
export function tokenWeights(
  builder: GraphBuilder,
  hidden: string,
  weight: ArrayLike<number>,
  bias: ArrayLike<number>,
): string {
  const matrix = { outFeatures: 1, inFeatures: weight.length, values: weight };
  const sums = dense(builder, hidden, { weight: matrix, bias, activation: 'identity', residual: 'none' });
  // Reshape, because the axes of Squeeze became an input with operator set 13.
  return builder.node('Reshape', [builder.node('Relu', [sums]), builder.ints([0, -1])]);
}
