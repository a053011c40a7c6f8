import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { PairTemplate } from '../../../src/tokenize/template.ts';
import { cutIds, maxPassageTokens, maxTextTokens } from '../../../src/tokenize/truncate.ts';
import type { CountedIds } from '../../../src/tokenize/truncate.ts';

const tokens = (count: number) => ({ ids: Array<number>(count).fill(9), typeIds: Array<number>(count).fill(0) });
const pair: PairTemplate = { prefix: tokens(1), firstTypeId: 0, middle: tokens(1), secondTypeId: 1, suffix: tokens(1) };
const query = (totalTokens: number, isTotalMinimum = false): CountedIds => ({
  ids: new Int32Array(Math.min(totalTokens, 12)),
  totalTokens,
  isTotalMinimum,
});

describe('truncation', () => {
  it('a text gets the limit less the special tokens', () => {
    expect(maxTextTokens(16, { prefix: tokens(1), textTypeId: 0, suffix: tokens(1) })).toBe(14);
  });

  it('ids are cut from the right, and a short text keeps all of them', () => {
    expect(cutIds([1, 2, 3], 2)).toEqual(Int32Array.of(1, 2));
    expect(cutIds([1, 2, 3], 5)).toEqual(Int32Array.of(1, 2, 3));
  });

  it('a passage gets what the whole query and the special tokens leave, down to one token', () => {
    expect(maxPassageTokens(16, pair, query(0))).toBe(13);
    expect(maxPassageTokens(16, pair, query(12))).toBe(1);
  });

  it('a query that leaves no passage token is refused with its length and the most that is allowed', () => {
    let caught: unknown;
    try {
      maxPassageTokens(16, pair, query(13, true));
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(ServiceError);
    expect(caught).toMatchObject({
      errorName: 'invalidParams',
      data: { field: 'query', tokens: 13, limit: 12, tokensIsMinimum: true },
    });
  });
});
