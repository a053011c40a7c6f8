/** Owns what may be said of the tokens behind the rows of a multi-vector to who has no part in making it. */
import type { ServedModel } from './context.ts';
import { rowChoiceOf, textFormOf } from './text-form.ts';

/** How the rows of an uncut text of a kind follow from its tokens, special ones included. */
export interface RowTokens {
  /** Token put behind the first one; absent: none. */
  readonly markerId?: number;
  /** Token that fills the text up to the rows that there are; absent: none. */
  readonly fillId?: number;
  /** Tokens without a row. */
  readonly skippedIds: readonly number[];
  /** Whether the first token has a row, where it is none of those without. */
  readonly keepsFirstRow: boolean;
}

/** The rules of both kinds; null where a prompt goes before a text, whose tokens are not the text's. */
export function rowTokensOf(served: ServedModel): Readonly<Record<'query' | 'document', RowTokens>> | null {
  if (Object.values(served.manifest.prompts).some((prompt) => prompt !== '')) return null;
  return { query: rulesOf(served, 'query'), document: rulesOf(served, 'document') };
}

function rulesOf(served: ServedModel, kind: 'query' | 'document'): RowTokens {
  const { markerId, expansionId, filling } = textFormOf(served, 'rows', kind);
  const fillId = expansionId ?? filling?.id ?? null;
  const choice = rowChoiceOf(served, 'rows', kind);
  return {
    ...(markerId === null ? {} : { markerId }),
    ...(fillId === null ? {} : { fillId }),
    skippedIds: [...(choice?.skippedIds ?? [])],
    keepsFirstRow: choice?.keepsFirstRow ?? true,
  };
}
