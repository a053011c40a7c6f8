/** Owns which token rows of a multi-vector are kept. */

/**
 * Positions of the tokens that are not skipped, ascending, never none; null where all are kept.
 * A text of nothing but skipped tokens keeps all of them, since a multi-vector has at least one row.
 */
export function keptRowsOf(ids: Int32Array, skippedIds: ReadonlySet<number>): Int32Array | null {
  const positions: number[] = [];
  ids.forEach((id, position) => {
    if (!skippedIds.has(id)) positions.push(position);
  });
  return positions.length === 0 || positions.length === ids.length ? null : Int32Array.from(positions);
}
