/** Owns SPLADE pooling in plain TypeScript, in the order of the paper. */
import type { SpladeVariant } from './graph.ts';

/**
 * For each term the maximum, or sum, over the real tokens of log(1 + relu(logit)); zero where there is no real token.
 * @shape f32 [sequence, vocabulary] -> f32 [vocabulary]
 */
export function spladeReference(
  logits: readonly (readonly number[])[],
  mask: readonly number[] | null,
  { pooling, activation }: SpladeVariant = { pooling: 'max', activation: 'relu' },
): number[] {
  const real = logits.filter((_, position) => mask === null || mask[position] === 1);
  const weightOf = (logit: number): number => {
    const weight = Math.log(1 + Math.max(0, logit));
    return activation === 'log1pRelu' ? Math.log(1 + weight) : weight;
  };
  return (logits[0] ?? []).map((_, term) => {
    const weights = real.map((row) => weightOf(row[term] ?? 0));
    return pooling === 'max' ? Math.max(0, ...weights) : weights.reduce((total, weight) => total + weight, 0);
  });
}
