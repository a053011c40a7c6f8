/** Owns first-token pooling in plain TypeScript. */

/**
 * The first row whose mask is 1; null means all; the zero vector where there is none.
 * @shape f32 [sequence, hidden] -> f32 [hidden]
 */
export function clsPoolReference(rows: readonly (readonly number[])[], mask: readonly number[] | null): number[] {
  const first = mask === null ? 0 : mask.indexOf(1);
  return (rows[0] ?? []).map((_, column) => rows[first]?.[column] ?? 0);
}
