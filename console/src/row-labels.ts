/** Owns the labels of rows: words where it is known which token each row is of, else positions. */
import type { RowTokens } from './info.ts';
import { rowNumbers } from './lines.ts';
import { tokensOfRows } from './row-tokens.ts';
import { tokensOf, wordsOf, type Teller } from './tokens.ts';

/** Texts of a kind, and what came of them. */
export interface RowedTexts {
  readonly texts: readonly string[];
  /** Rows of each text. */
  readonly rowCounts: readonly number[];
  /** Places of the texts that were cut: their rows are not those of all their tokens. */
  readonly cut: readonly number[];
}

/** A label for each row of a text. */
export interface RowLabels {
  readonly labels: readonly string[];
  /** False: the labels are positions. */
  readonly areWords: boolean;
}

/**
 * The labels of each text, in their order.
 * @throws CallFailure where it was stopped
 */
export async function labelRows(
  teller: Teller,
  rules: RowTokens | undefined,
  { texts, rowCounts, cut }: RowedTexts,
): Promise<RowLabels[]> {
  const whole = texts.filter((_, place) => !cut.includes(place));
  const tokens = rules === undefined ? null : await tokensOf(teller, whole);
  const wordOf = rules === undefined ? () => '' : await wordsByRule(teller, rules);
  let next = 0;
  return rowCounts.map((rows, place) => {
    const own = cut.includes(place) ? undefined : tokens?.[next++];
    const told = rules === undefined || own === undefined ? null : tokensOfRows(own, rules, rows, wordOf);
    return { labels: told?.map(({ text }) => text) ?? rowNumbers(rows), areWords: told !== null };
  });
}

/** The words of the tokens that stand in every text of a kind. */
async function wordsByRule(teller: Teller, { markerId, fillId }: RowTokens): Promise<(id: number) => string> {
  const ids = [markerId, fillId].filter((id) => id !== undefined);
  const words = ids.length === 0 ? [] : await wordsOf(teller, ids);
  return (id) => words?.[ids.indexOf(id)] ?? `token ${id}`;
}
