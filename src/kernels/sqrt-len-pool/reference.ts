/** Owns the pooling that divides by the square root of the length, in plain TypeScript. */

/**
 * The sum of the rows whose mask is 1, divided by the square root of their number; null means all rows.
 * @shape f32 [sequence, hidden] -> f32 [hidden]
 */
export function sqrtLenPoolReference(rows: readonly (readonly number[])[], mask: readonly number[] | null): number[] {
  const real = rows.filter((_, position) => mask === null || mask[position] === 1);
  return (rows[0] ?? []).map((_, column) => {
    const sum = real.reduce((total, row) => total + (row[column] ?? 0), 0);
    return sum / Math.sqrt(Math.max(real.length, 1));
  });
}
