/** Owns the token rows of a multi-vector in plain TypeScript. */
import { normalizeReference } from '../normalize/reference.ts';

/**
 * Every row scaled to length 1.
 * @shape f32 [sequence, hidden] -> f32 [sequence, hidden]
 */
export function lateInteractionReference(rows: readonly (readonly number[])[]): number[][] {
  return rows.map((row) => normalizeReference(row));
}
