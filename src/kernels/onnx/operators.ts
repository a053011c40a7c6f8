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

/** What is added to the values of padding before a maximum: below every real value, far inside float32. */
const paddingBias = 1e9;

/**
 * The tensor with the rows of padding far below all others; real rows get exactly 0 added, so not a bit of them changes.
 * @shape f32 [batch, sequence, width], int64 [batch, sequence] -> f32 [batch, sequence, width]
 */
export function hidePadding(builder: GraphBuilder, tensor: string, mask: string): string {
  const isPadding = builder.node('Sub', [maskColumn(builder, mask), builder.floats([1])]);
  return builder.node('Add', [tensor, builder.node('Mul', [isPadding, builder.floats([paddingBias])])]);
}

/**
 * A one for each token row: the mask of a graph that has none.
 * @shape f32 [batch, sequence, width] -> f32 [batch, sequence, 1]
 */
export function onesColumn(builder: GraphBuilder, tensor: string): string {
  const lengths = builder.node('Gather', [builder.node('Shape', [tensor]), builder.ints([0, 1])], { axis: 0 });
  const shape = builder.node('Concat', [lengths, builder.ints([1])], { axis: 0 });
  return builder.node('Add', [builder.node('ConstantOfShape', [shape]), builder.floats([1])]);
}

/** The attention mask as factors, or ones where there is no mask. @shape f32 [batch, sequence, 1] */
export function rowFactors(builder: GraphBuilder, tensor: string, mask: string | null): string {
  return mask === null ? onesColumn(builder, tensor) : maskColumn(builder, mask);
}
