/** Owns SPLADE max pooling in plain TypeScript, in the order of the paper. */

/**
 * For each term the maximum over the real tokens of log(1 + relu(logit)); zero where there is no real token.
 * @shape f32 [sequence, vocabulary] -> f32 [vocabulary]
 */
export function spladeReference(logits: readonly (readonly number[])[], mask: readonly number[] | null): number[] {
  const real = logits.filter((_, position) => mask === null || mask[position] === 1);
  return (logits[0] ?? []).map((_, term) =>
    Math.max(0, ...real.map((row) => Math.log(1 + Math.max(0, row[term] ?? 0)))),
  );
}
