/** Owns L2 normalisation as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { minNorm, reduce } from '../onnx/operators.ts';

/**
 * The tensor with each vector of its last axis scaled to length 1; a zero vector stays zero.
 * @shape f32 [..., dimension] -> f32 [..., dimension]
 * @source torch.nn.functional.normalize
 */
export function normalize(builder: GraphBuilder, tensor: string): string {
  const squares = reduce(builder, 'ReduceSum', builder.node('Mul', [tensor, tensor]), -1, true);
  const norms = builder.node('Sqrt', [squares]);
  return builder.node('Div', [tensor, builder.node('Max', [norms, builder.floats([minNorm])])]);
}
