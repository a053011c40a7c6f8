/** Owns L2 normalisation in plain TypeScript. */

/**
 * The vector scaled to length 1; a zero vector stays zero.
 * @shape f32 [dimension] -> f32 [dimension]
 */
export function normalizeReference(vector: readonly number[]): number[] {
  const norm = Math.sqrt(vector.reduce((total, value) => total + value * value, 0));
  return vector.map((value) => (norm === 0 ? 0 : value / norm));
}
