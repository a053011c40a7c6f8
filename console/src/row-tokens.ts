/** Owns which token each row of a multi-vector is of. */
import type { RowTokens } from './info.ts';

/** A token as `/tokenize` tells it. */
export interface Token {
  readonly id: number;
  readonly text: string;
}

/** The token of each row; null where rows and tokens do not add up. */
export function tokensOfRows(
  tokens: readonly Token[],
  { markerId, fillId, skippedIds, keepsFirstRow }: RowTokens,
  rows: number,
  wordOf: (id: number) => string,
): Token[] | null {
  const token = (id: number): Token => ({ id, text: wordOf(id) });
  const marked = markerId === undefined ? [...tokens] : tokens.toSpliced(1, 0, token(markerId));
  const skipped = new Set(skippedIds);
  const kept = marked.filter(({ id }, place) => !skipped.has(id) && (place > 0 || keepsFirstRow));
  // A multi-vector has a row at least: where none is left, all count.
  const counted = kept.length === 0 && fillId === undefined ? marked : kept;
  const missing = rows - counted.length;
  if (missing > 0 && fillId !== undefined) counted.push(...Array.from({ length: missing }, () => token(fillId)));
  return counted.length === rows ? counted : null;
}
