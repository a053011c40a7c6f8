import { describe, expect, it } from 'vitest';
import { keptRowsOf } from '../../../src/tokenize/kept-rows.ts';
import { withPrompt } from '../../../src/tokenize/prompts.ts';

const without = (skippedIds: readonly number[], keepsFirstRow = true) => ({
  skippedIds: new Set(skippedIds),
  keepsFirstRow,
});

describe('kept rows', () => {
  it('positions of skipped tokens are left out', () => {
    expect(keptRowsOf(Int32Array.of(101, 7, 5, 7, 102), without([7]))).toEqual(Int32Array.of(0, 2, 4));
  });

  it('null says that all are kept', () => {
    expect(keptRowsOf(Int32Array.of(101, 102), without([7]))).toBeNull();
  });

  it('a text of nothing but skipped tokens keeps its rows', () => {
    expect(keptRowsOf(Int32Array.of(7, 7), without([7]))).toBeNull();
  });
});

describe('the first row', () => {
  it('is left out where the model says so, whatever its token', () => {
    expect(keptRowsOf(Int32Array.of(101, 5, 102), without([], false))).toEqual(Int32Array.of(1, 2));
    expect(keptRowsOf(Int32Array.of(101, 7, 102), without([7], false))).toEqual(Int32Array.of(2));
  });

  it('stays where it is the only one', () => {
    expect(keptRowsOf(Int32Array.of(101), without([], false))).toBeNull();
  });
});

describe('prompts', () => {
  const prompts = { query: 'query: ', document: 'passage: ', unspecified: '' };

  it('the prompt of the kind comes before the text, which stays as it is', () => {
    expect(withPrompt(' a\n', 'query', prompts)).toBe('query:  a\n');
  });

  it('a text without a kind gets the prompt for that, which may be none', () => {
    expect(withPrompt('a', 'unspecified', prompts)).toBe('a');
  });
});
