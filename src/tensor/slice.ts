/** Owns cutting a vector to its first dimensions. */

/**
 * The first `dimensions` values at unit length; zero stays zero.
 * @shape f32 [dimension] -> f32 [dimensions]
 */
export function cutAndNormalize(values: Float32Array, dimensions: number): Float32Array {
  const cut = values.slice(0, dimensions);
  let squares = 0;
  for (const value of cut) squares += value * value;
  const norm = Math.sqrt(squares);
  return norm === 0 ? cut : cut.map((value) => value / norm);
}
