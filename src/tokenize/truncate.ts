/** Owns what is cut when a text is longer than the model reads: one end of the text, never a special token. */
import { invalidField } from '../errors.ts';
import { pairSpecialTokens, singleSpecialTokens } from './template.ts';
import type { PairTemplate, SingleTemplate } from './template.ts';
import type { KeptSide } from './window.ts';

/** The start of a text, or its end, as ids without special tokens, and how long the whole text is. */
export interface CountedIds {
  /** No more than were asked for. @shape [tokens] */
  readonly ids: Int32Array;
  /** Tokens of the whole text, without special tokens. */
  readonly totalTokens: number;
  /** True where the rest of a very long text was not counted: `totalTokens` is a lower bound. */
  readonly isTotalMinimum: boolean;
}

/** The first `maxIds` ids, or the last ones; all where there are fewer. */
export function cutIds(ids: ArrayLike<number>, maxIds: number, keptSide: KeptSide = 'start'): Int32Array {
  const kept = new Int32Array(Math.min(ids.length, maxIds));
  const first = keptSide === 'start' ? 0 : ids.length - kept.length;
  for (let index = 0; index < kept.length; index++) kept[index] = ids[first + index] ?? 0;
  return kept;
}

/**
 * Room for a single text beside its special tokens; below 1 where there is none.
 * @unit tokens
 */
export const maxTextTokens = (maxTokens: number, template: SingleTemplate): number =>
  maxTokens - singleSpecialTokens(template);

/**
 * The longest query that still leaves room for one passage token; below 0 where no query does.
 * @unit tokens
 */
export const maxQueryTokens = (maxTokens: number, template: PairTemplate): number =>
  maxTokens - pairSpecialTokens(template) - 1;

/**
 * Lets a query pass that leaves room for a passage.
 * @throws invalidParams, field `query`, where it has more than `limit` tokens
 */
export function checkQueryRoom(query: CountedIds, limit: number): void {
  if (query.totalTokens <= limit) return;
  const count = `${query.isTotalMinimum ? 'at least ' : ''}${String(query.totalTokens)}`;
  throw invalidField(
    'query',
    `has ${count} tokens and leaves no room for a passage; shorten it to ${String(Math.max(0, limit))} tokens`,
    { tokens: query.totalTokens, limit: Math.max(0, limit), tokensIsMinimum: query.isTotalMinimum || undefined },
  );
}

/**
 * Room for a passage beside the whole query and the special tokens, at least 1.
 * @unit tokens
 * @throws invalidParams, field `query`, where the query leaves none
 */
export function maxPassageTokens(maxTokens: number, template: PairTemplate, query: CountedIds): number {
  const limit = maxQueryTokens(maxTokens, template);
  checkQueryRoom(query, limit);
  return limit + 1 - query.totalTokens;
}
