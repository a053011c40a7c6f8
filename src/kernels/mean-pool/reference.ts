/** Owns mean pooling in plain TypeScript. */

/**
 * The mean of the rows whose mask is 1; null means all; the zero vector where there is none.
 * @shape f32 [sequence, hidden] -> f32 [hidden]
 */
export function meanPoolReference(rows: readonly (readonly number[])[], mask: readonly number[] | null): number[] {
  const real = rows.filter((_, position) => mask === null || mask[position] === 1);
  return (rows[0] ?? []).map((_, column) => {
    const sum = real.reduce((total, row) => total + (row[column] ?? 0), 0);
    return sum / Math.max(real.length, 1);
  });
}
