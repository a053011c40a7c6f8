/** Owns a linear layer with an activation in plain TypeScript. */
import type { Activation } from './activations.ts';

/** The error function by its series, which is exact to 1e-9 where it differs from 1 by more than 2e-8. */
function errorFunction(x: number): number {
  if (Math.abs(x) > 4) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let order = 1; Math.abs(term) > 1e-17; order += 1) {
    term *= -(x * x) / order;
    sum += term / (2 * order + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

const between = (x: number, least: number, most: number): number => Math.min(most, Math.max(least, x));
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const elu = (x: number): number => (x > 0 ? x : Math.expm1(x));

/** By name, of one number. @source torch.nn.functional */
const activations: Readonly<Record<Activation, (x: number) => number>> = {
  identity: (x) => x,
  tanh: Math.tanh,
  relu: (x) => Math.max(0, x),
  relu6: (x) => between(x, 0, 6),
  leakyrelu: (x) => (x < 0 ? x * 0.01 : x),
  elu,
  celu: elu,
  selu: (x) => 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * Math.expm1(x)),
  gelu: (x) => (x * (1 + errorFunction(x * Math.SQRT1_2))) / 2,
  sigmoid,
  silu: (x) => x * sigmoid(x),
  mish: (x) => x * Math.tanh(softplus(x)),
  softplus,
  softsign: (x) => x / (1 + Math.abs(x)),
  hardtanh: (x) => between(x, -1, 1),
  hardsigmoid: (x) => between(x / 6 + 0.5, 0, 1),
  hardswish: (x) => x * between(x / 6 + 0.5, 0, 1),
  logsigmoid: (x) => -softplus(-x),
};

/** A linear layer; matrices have one row for each output. */
export interface DenseReferenceLayer {
  readonly weight: readonly (readonly number[])[];
  readonly bias: readonly number[] | null;
  readonly activation: Activation;
  readonly residual: 'none' | 'input' | readonly (readonly number[])[];
}

const multiply = (matrix: readonly (readonly number[])[], vector: readonly number[]): number[] =>
  matrix.map((row) => row.reduce((total, weight, index) => total + weight * (vector[index] ?? 0), 0));

/**
 * activation(weight * vector + bias), plus the residual.
 * @shape f32 [inFeatures] -> f32 [outFeatures]
 */
export function denseReference(vector: readonly number[], layer: DenseReferenceLayer): number[] {
  const { weight, bias, activation, residual } = layer;
  const around = residual === 'input' ? vector : residual === 'none' ? [] : multiply(residual, vector);
  return multiply(weight, vector).map((product, index) => {
    const sum = product + (bias?.[index] ?? 0);
    return activations[activation](sum) + (around[index] ?? 0);
  });
}
