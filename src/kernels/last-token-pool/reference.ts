/** Owns last-token pooling in plain TypeScript. */

/**
 * The last row whose mask is 1; null means all; the zero vector where there is none.
 * @shape f32 [sequence, hidden] -> f32 [hidden]
 */
export function lastTokenPoolReference(rows: readonly (readonly number[])[], mask: readonly number[] | null): number[] {
  const last = mask === null ? rows.length - 1 : mask.lastIndexOf(1);
  return (rows[0] ?? []).map((_, column) => rows[last]?.[column] ?? 0);
}
