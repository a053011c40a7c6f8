/** Owns which token rows of a multi-vector are kept. */

/** Which rows count. */
export interface RowChoice {
  /** Ids of tokens whose rows are left out. */
  readonly skippedIds: ReadonlySet<number>;
  /** False: the row of the first token is left out, whatever it is. */
  readonly keepsFirstRow: boolean;
}

/**
 * Positions of the rows that count, ascending, never none; null where all do.
 * Where none would count all of them do, since a multi-vector has at least one row.
 */
export function keptRowsOf(ids: Int32Array, { skippedIds, keepsFirstRow }: RowChoice): Int32Array | null {
  const positions: number[] = [];
  ids.forEach((id, position) => {
    if (!skippedIds.has(id) && (position > 0 || keepsFirstRow)) positions.push(position);
  });
  return positions.length === 0 || positions.length === ids.length ? null : Int32Array.from(positions);
}
