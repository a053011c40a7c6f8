/** Owns the one score of a classifier with two labels in plain TypeScript. */

/**
 * The logit of one entry minus that of another.
 * @shape f32 [entries] -> f32 [1]
 */
export function labelLogitReference(logits: readonly number[], positive: number, negative: number): number[] {
  return [(logits[positive] ?? 0) - (logits[negative] ?? 0)];
}
