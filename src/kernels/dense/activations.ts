/** Owns the activations of a linear layer as ONNX nodes, each with the constants that torch gives it by default. */
import type { GraphBuilder } from '../onnx/builder.ts';

type Build = (builder: GraphBuilder, tensor: string) => string;

/** An operator of the standard whose own defaults are those of torch. */
const operator =
  (opType: string): Build =>
  (builder, tensor) =>
    builder.node(opType, [tensor]);

/** Values outside the bounds become the bounds. */
const clip = (builder: GraphBuilder, tensor: string, least: number, most: number): string =>
  builder.node('Clip', [tensor, builder.floats([least], []), builder.floats([most], [])]);

const times = (builder: GraphBuilder, tensor: string, other: string): string => builder.node('Mul', [tensor, other]);

/** x / 6 + 1 / 2 within 0 and 1. */
const hardSigmoid: Build = (builder, tensor) =>
  clip(
    builder,
    builder.node('Add', [times(builder, tensor, builder.floats([1 / 6], [])), builder.floats([0.5], [])]),
    0,
    1,
  );

/** x times the chance that a normal number is below it. */
const gelu: Build = (builder, tensor) => {
  const error = builder.node('Erf', [times(builder, tensor, builder.floats([Math.SQRT1_2], []))]);
  const chance = builder.node('Add', [error, builder.floats([1], [])]);
  return times(builder, times(builder, tensor, chance), builder.floats([0.5], []));
};

/** By the lower-case name of torch's class. @source torch.nn.modules.activation */
const builds = {
  identity: (_builder: GraphBuilder, tensor: string) => tensor,
  tanh: operator('Tanh'),
  relu: operator('Relu'),
  relu6: (builder: GraphBuilder, tensor: string) => clip(builder, tensor, 0, 6),
  leakyrelu: operator('LeakyRelu'),
  elu: operator('Elu'),
  // With its default alpha of 1 the same.
  celu: operator('Elu'),
  selu: operator('Selu'),
  gelu,
  sigmoid: operator('Sigmoid'),
  silu: (builder: GraphBuilder, tensor: string) => times(builder, tensor, builder.node('Sigmoid', [tensor])),
  mish: (builder: GraphBuilder, tensor: string) =>
    times(builder, tensor, builder.node('Tanh', [builder.node('Softplus', [tensor])])),
  softplus: operator('Softplus'),
  softsign: operator('Softsign'),
  hardtanh: (builder: GraphBuilder, tensor: string) => clip(builder, tensor, -1, 1),
  hardsigmoid: hardSigmoid,
  hardswish: (builder: GraphBuilder, tensor: string) => times(builder, tensor, hardSigmoid(builder, tensor)),
  logsigmoid: (builder: GraphBuilder, tensor: string) =>
    builder.node('Neg', [builder.node('Softplus', [builder.node('Neg', [tensor])])]),
} satisfies Readonly<Record<string, Build>>;

/** An activation that a layer may have. */
export type Activation = keyof typeof builds;

/** The activation of this name; null where there is no kernel for it. */
export const activationOf = (name: string): Activation | null =>
  Object.hasOwn(builds, name) ? (name as Activation) : null;

/** The activation of each number. @shape f32 [...] -> f32 [...] */
export const activate = (builder: GraphBuilder, tensor: string, activation: Activation): string =>
  builds[activation](builder, tensor);
