/** Owns the pooling that divides by the square root of the length, as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { reduce, rowFactors } from '../onnx/operators.ts';

/**
 * The sum of each text's real token rows, divided by the square root of their number.
 * @shape f32 [batch, sequence, hidden], int64 [batch, sequence] -> f32 [batch, hidden]
 * @source sentence-transformers, Pooling, mode `mean_sqrt_len_tokens`
 */
export function sqrtLenPool(builder: GraphBuilder, hidden: string, mask: string | null): string {
  const factors = rowFactors(builder, hidden, mask);
  const sums = reduce(builder, 'ReduceSum', builder.node('Mul', [hidden, factors]), 1, false);
  const counts = reduce(builder, 'ReduceSum', factors, 1, false);
  // A text without a real token would divide by zero.
  const roots = builder.node('Sqrt', [builder.node('Max', [counts, builder.floats([1])])]);
  return builder.node('Div', [sums, roots]);
}
