/** Owns how alike the values are that one model gives in two ways. */
import type { Head, RunRow } from '../executor/protocol.ts';
import { cosine, sparseCosine } from '../tensor/cosine.ts';

/** How alike two lists of values are. */
export interface Likeness {
  /** What was compared: cosines of vectors, or the differences of logits. */
  readonly measure: 'cosine' | 'difference';
  readonly head: Head;
  /** The least cosine, or the largest difference. */
  readonly worst: number;
  readonly mean: number;
  readonly texts: number;
}

function likenessOf(one: RunRow, other: RunRow, head: Head): number {
  if (head === 'logit') return Math.abs((one.values[0] ?? NaN) - (other.values[0] ?? NaN));
  if (one.indices !== null && other.indices !== null) {
    return sparseCosine({ indices: one.indices, values: one.values }, { indices: other.indices, values: other.values });
  }
  return one.values.length === other.values.length ? cosine(one.values, other.values) : NaN;
}

/** How alike the rows of two forms are, text by text; NaN where a pair of rows cannot be compared. */
export function compareRows(ones: readonly RunRow[], others: readonly RunRow[], head: Head): Likeness {
  const values = ones.map((row, index) =>
    likenessOf(row, others[index] ?? { values: new Float32Array(), indices: null }, head),
  );
  const measure = head === 'logit' ? 'difference' : 'cosine';
  const worst = measure === 'difference' ? Math.max(...values) : Math.min(...values);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { measure, head, worst, mean, texts: values.length };
}
