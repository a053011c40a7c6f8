/** Owns the mean that weighs later tokens more, in plain TypeScript. */

/**
 * The mean of the rows whose mask is 1, each weighed with its position from 1; null means all rows.
 * @shape f32 [sequence, hidden] -> f32 [hidden]
 */
export function weightedMeanPoolReference(
  rows: readonly (readonly number[])[],
  mask: readonly number[] | null,
): number[] {
  const weights = rows.map((_, position) => (mask === null || mask[position] === 1 ? position + 1 : 0));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return (rows[0] ?? []).map((_, column) => {
    const sum = rows.reduce((part, row, position) => part + (row[column] ?? 0) * (weights[position] ?? 0), 0);
    return sum / Math.max(total, 1);
  });
}
