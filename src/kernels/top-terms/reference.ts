/** Owns the heaviest terms of a sparse vector in plain TypeScript. */

/**
 * The `terms` largest weights, descending, and where they stand.
 * @shape f32 [vocabulary] -> f32 [terms], [terms]
 */
export function topTermsReference(
  weights: readonly number[],
  terms: number,
): { readonly weights: number[]; readonly ids: number[] } {
  const ids = weights
    .map((_, id) => id)
    .sort((left, right) => (weights[right] ?? 0) - (weights[left] ?? 0) || left - right);
  const kept = ids.slice(0, terms);
  return { weights: kept.map((id) => weights[id] ?? 0), ids: kept };
}
