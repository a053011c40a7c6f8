/** Owns first-token pooling as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { maskColumn, reduce } from '../onnx/operators.ts';

/**
 * The row of each text's first real token; without a mask the first row, which padding on the right never moves.
 * @shape f32 [batch, sequence, hidden], int64 [batch, sequence] -> f32 [batch, hidden]
 * @source Sentence-BERT (Reimers and Gurevych 2019), section 3, CLS strategy
 */
export function clsPool(builder: GraphBuilder, hidden: string, mask: string | null = null): string {
  if (mask === null) return builder.node('Gather', [hidden, builder.ints([0], [])], { axis: 1 });
  const real = maskColumn(builder, mask);
  const realSoFar = builder.node('CumSum', [real, builder.ints([1], [])]);
  // The running count of real tokens is 1 at the first one and, until the second, only at padding, whose factor is 0.
  const isFirst = builder.node('Equal', [builder.node('Mul', [realSoFar, real]), builder.floats([1])]);
  return reduce(builder, 'ReduceSum', builder.node('Where', [isFirst, hidden, builder.floats([0])]), 1, false);
}
