/** Owns the cut of a sparse vector to its heaviest terms. */
import type { TokenTerms } from './token-terms.ts';

/** How much a term counts; what is not a number counts most, so that it is noticed. */
const weightOf = (value: number): number => (Number.isNaN(value) ? Infinity : Math.abs(value));

/**
 * The `maxTerms` terms with the greatest weight apart from its sign, by ascending id as before; of equal ones the
 * smaller id stays. All of them where `maxTerms` is null.
 * @source sentence-transformers, `select_max_active_dims`, which leaves the choice among equal weights open
 */
export function heaviestTerms(terms: TokenTerms, maxTerms: number | null): TokenTerms {
  const { indices, values } = terms;
  if (maxTerms === null || indices.length <= maxTerms) return terms;
  const weights = Float32Array.from(values, weightOf);
  const kept = Array.from(indices.keys())
    .sort((a, b) => (weights[a] === weights[b] ? a - b : (weights[b] ?? 0) - (weights[a] ?? 0)))
    .slice(0, maxTerms)
    .sort((a, b) => a - b);
  return {
    indices: Int32Array.from(kept, (position) => indices[position] ?? 0),
    values: Float32Array.from(kept, (position) => values[position] ?? 0),
  };
}
