/** Owns cutting a vector to its first dimensions. */

/**
 * The vector with its mean taken away from each value: what a layer normalisation without weights does, up to the
 * scale, which unit length takes away again.
 * @shape f32 [dimension] -> f32 [dimension]
 */
export function center(values: Float32Array): Float32Array {
  let sum = 0;
  for (const value of values) sum += value;
  const mean = values.length === 0 ? 0 : sum / values.length;
  return values.map((value) => value - mean);
}

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
