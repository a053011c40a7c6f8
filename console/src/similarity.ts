/** Owns how alike vectors are: cosines, and MaxSim between rows. */

const dot = (left: readonly number[], right: readonly number[]) =>
  left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0);

/** Cosine of two vectors; 0 where one of them has no direction. */
export function cosine(left: readonly number[], right: readonly number[]): number {
  const norms = Math.sqrt(dot(left, left) * dot(right, right));
  return norms === 0 ? 0 : dot(left, right) / norms;
}

/** Cosine of each vector with each. */
export const cosines = (vectors: readonly (readonly number[])[]): number[][] =>
  vectors.map((left) => vectors.map((right) => cosine(left, right)));

/** What late interaction makes of a query and a document. */
export interface MaxSim {
  /** Dot product of each row of the query with each row of the document. */
  readonly products: readonly (readonly number[])[];
  /** For each row of the query the row of the document that is most alike; the first one of equals. */
  readonly best: readonly number[];
  /** Sum of the best products. */
  readonly score: number;
}

/** MaxSim of the rows of a query and of a document that has at least one. */
export function maxSim(query: readonly (readonly number[])[], document: readonly (readonly number[])[]): MaxSim {
  const products = query.map((row) => document.map((other) => dot(row, other)));
  const best = products.map((row) => row.indexOf(Math.max(...row)));
  const score = products.reduce((sum, row, index) => sum + (row[best[index] ?? 0] ?? 0), 0);
  return { products, best, score };
}
