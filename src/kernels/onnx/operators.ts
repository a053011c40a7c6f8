/** Owns the few operators that the kernels share and whose form depends on the operator set. */
import { elementTypes } from './builder.ts';
import type { GraphBuilder } from './builder.ts';

/** Oldest operator set that the kernels can be written in. */
export const minOpset = 11;

/**
 * Smallest norm that is divided by, so that a zero vector stays zero.
 * @source torch.nn.functional.normalize, `eps`
 */
export const minNorm = 1e-12;

/** First operator set in which the axes of a reduction are an input instead of an attribute. */
const axesInputSince = { ReduceSum: 13, ReduceMax: 18, ReduceMean: 18 } as const;

/** Reduction over one axis. */
export function reduce(
  builder: GraphBuilder,
  opType: keyof typeof axesInputSince,
  tensor: string,
  axis: number,
  keepsAxis: boolean,
): string {
  const keepdims = keepsAxis ? 1 : 0;
  return builder.opset >= axesInputSince[opType]
    ? builder.node(opType, [tensor, builder.ints([axis])], { keepdims })
    : builder.node(opType, [tensor], { axes: [axis], keepdims });
}

/** Conversion to float32; `tensor` itself where it is that already. */
export function toFloat32(builder: GraphBuilder, tensor: string, elementType: number): string {
  return elementType === elementTypes.float32 ? tensor : builder.node('Cast', [tensor], { to: elementTypes.float32 });
}

/**
 * The attention mask as float32 factors, one for each token row.
 * @shape int64 [batch, sequence] -> f32 [batch, sequence, 1]
 */
export function maskColumn(builder: GraphBuilder, mask: string): string {
  const factors = toFloat32(builder, mask, elementTypes.int64);
  return builder.node('Reshape', [factors, builder.ints([0, -1, 1])]);
}
