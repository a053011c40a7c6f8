/** Owns a linear layer with an activation in plain TypeScript. */

/** A linear layer; matrices have one row for each output. */
export interface DenseReferenceLayer {
  readonly weight: readonly (readonly number[])[];
  readonly bias: readonly number[] | null;
  readonly activation: 'identity' | 'tanh';
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
    return (activation === 'tanh' ? Math.tanh(sum) : sum) + (around[index] ?? 0);
  });
}
