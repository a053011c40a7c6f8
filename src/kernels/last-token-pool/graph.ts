/** Owns last-token pooling as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { maskColumn, reduce } from '../onnx/operators.ts';

/**
 * The row of each text's last real token, whichever side is padded; without a mask the last row.
 * @shape f32 [batch, sequence, hidden], int64 [batch, sequence] -> f32 [batch, hidden]
 * @source sentence-transformers, Pooling, mode `lasttoken`
 */
export function lastTokenPool(builder: GraphBuilder, hidden: string, mask: string | null): string {
  if (mask === null) return builder.node('Gather', [hidden, builder.ints([-1], [])], { axis: 1 });
  const real = maskColumn(builder, mask);
  // The running count of real tokens, 0 at padding: its maximum is reached at the last real token alone.
  const counts = builder.node('Mul', [builder.node('CumSum', [real, builder.ints([1], [])]), real]);
  const last = builder.node('Max', [reduce(builder, 'ReduceMax', counts, 1, true), builder.floats([1])]);
  const isLast = builder.node('Equal', [counts, last]);
  return reduce(builder, 'ReduceSum', builder.node('Where', [isLast, hidden, builder.floats([0])]), 1, false);
}
