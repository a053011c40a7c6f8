/** Owns maximum pooling in plain TypeScript. */

/**
 * The largest value of each column over the rows whose mask is 1; null means all.
 * @shape f32 [sequence, hidden] -> f32 [hidden]
 */
export function maxPoolReference(rows: readonly (readonly number[])[], mask: readonly number[] | null): number[] {
  const real = rows.filter((_, position) => mask === null || mask[position] === 1);
  return (rows[0] ?? []).map((_, column) => Math.max(...real.map((row) => row[column] ?? 0)));
}
