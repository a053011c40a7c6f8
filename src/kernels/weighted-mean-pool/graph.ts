/** Owns the mean that weighs later tokens more, as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { onesColumn, reduce, rowFactors } from '../onnx/operators.ts';

/**
 * The mean of each text's real token rows, each weighed with its position, counted from 1 at the first row.
 * @shape f32 [batch, sequence, hidden], int64 [batch, sequence] -> f32 [batch, hidden]
 * @source SGPT (Muennighoff 2022), equation 2; sentence-transformers, Pooling, mode `weightedmean`
 */
export function weightedMeanPool(builder: GraphBuilder, hidden: string, mask: string | null): string {
  const positions = builder.node('CumSum', [onesColumn(builder, hidden), builder.ints([1], [])]);
  const weights = builder.node('Mul', [positions, rowFactors(builder, hidden, mask)]);
  const sums = reduce(builder, 'ReduceSum', builder.node('Mul', [hidden, weights]), 1, false);
  const totals = reduce(builder, 'ReduceSum', weights, 1, false);
  // A text without a real token would divide by zero.
  return builder.node('Div', [sums, builder.node('Max', [totals, builder.floats([1])])]);
}
