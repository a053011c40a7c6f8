/** Owns layer normalisation as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { reduce } from '../onnx/operators.ts';

/** What is added to the variance. @source torch.nn.LayerNorm, `eps` */
const variancePart = 1e-5;

/**
 * The tensor with mean 0 and variance 1 along its last axis, then scaled and shifted.
 * @shape f32 [..., width], f32 [width], f32 [width] -> f32 [..., width]
 * @source Layer Normalization (Ba et al. 2016), equation 3; torch.nn.LayerNorm
 */
export function layerNorm(
  builder: GraphBuilder,
  tensor: string,
  weight: ArrayLike<number>,
  bias: ArrayLike<number>,
): string {
  const centred = builder.node('Sub', [tensor, reduce(builder, 'ReduceMean', tensor, -1, true)]);
  const variance = reduce(builder, 'ReduceMean', builder.node('Mul', [centred, centred]), -1, true);
  const deviation = builder.node('Sqrt', [builder.node('Add', [variance, builder.floats([variancePart])])]);
  const scaled = builder.node('Mul', [builder.node('Div', [centred, deviation]), builder.floats(weight)]);
  return builder.node('Add', [scaled, builder.floats(bias)]);
}
