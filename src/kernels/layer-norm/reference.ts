/** Owns layer normalisation in plain TypeScript. */

/**
 * The vector with mean 0 and variance 1, then scaled and shifted.
 * @shape f32 [width] -> f32 [width]
 */
export function layerNormReference(
  vector: readonly number[],
  weight: readonly number[],
  bias: readonly number[],
): number[] {
  const mean = vector.reduce((total, value) => total + value, 0) / vector.length;
  const variance = vector.reduce((total, value) => total + (value - mean) ** 2, 0) / vector.length;
  return vector.map(
    (value, index) => ((value - mean) / Math.sqrt(variance + 1e-5)) * (weight[index] ?? 0) + (bias[index] ?? 0),
  );
}
