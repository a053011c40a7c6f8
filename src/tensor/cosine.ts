/** Owns the likeness of two vectors. */

/** Cosine of two dense vectors of equal length, in double precision; 0 where one of them is zero. */
export function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let dot = 0;
  let squaresA = 0;
  let squaresB = 0;
  for (let position = 0; position < a.length; position += 1) {
    const x = a[position] ?? 0;
    const y = b[position] ?? 0;
    dot += x * y;
    squaresA += x * x;
    squaresB += y * y;
  }
  const norms = Math.sqrt(squaresA) * Math.sqrt(squaresB);
  return norms === 0 ? 0 : dot / norms;
}

/** A vector given by its non-zero terms. */
export interface Terms {
  readonly indices: ArrayLike<number>;
  readonly values: ArrayLike<number>;
}

/** Cosine of two sparse vectors, in double precision; 0 where one of them is zero. */
export function sparseCosine(a: Terms, b: Terms): number {
  const weights = new Map(Array.from(b.indices, (index, position) => [index, b.values[position] ?? 0]));
  const dot = Array.from(a.indices, (index, position) => (a.values[position] ?? 0) * (weights.get(index) ?? 0));
  const norms = norm(a.values) * norm(b.values);
  return norms === 0 ? 0 : dot.reduce((sum, product) => sum + product, 0) / norms;
}

const norm = (values: ArrayLike<number>) =>
  Math.sqrt(Array.from(values).reduce((sum, value) => sum + value * value, 0));
