/** Owns mean pooling as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { maskColumn, reduce } from '../onnx/operators.ts';

/**
 * The mean of each text's token rows; with a mask, of its real tokens only.
 * @shape f32 [batch, sequence, hidden], int64 [batch, sequence] -> f32 [batch, hidden]
 * @source Sentence-BERT (Reimers and Gurevych 2019), section 3, MEAN strategy
 */
export function meanPool(builder: GraphBuilder, hidden: string, mask: string | null): string {
  if (mask === null) return reduce(builder, 'ReduceMean', hidden, 1, false);
  const factors = maskColumn(builder, mask);
  const sums = reduce(builder, 'ReduceSum', builder.node('Mul', [hidden, factors]), 1, false);
  const counts = reduce(builder, 'ReduceSum', factors, 1, false);
  // A text without a real token would divide by zero.
  return builder.node('Div', [sums, builder.node('Max', [counts, builder.floats([1])])]);
}
