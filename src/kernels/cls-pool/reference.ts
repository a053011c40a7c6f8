/** Owns first-token pooling in plain TypeScript. */

/**
 * The first row.
 * @shape f32 [sequence, hidden] -> f32 [hidden]
 */
export function clsPoolReference(rows: readonly (readonly number[])[]): number[] {
  return [...(rows[0] ?? [])];
}
