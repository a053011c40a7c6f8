import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { TokenLibrary } from '../../../src/tokenize/library.ts';
import type { TextTokenizer } from '../../../src/tokenize/tokenizer.ts';
import { anyText, loadMinilm, longText, openMinilm } from './minilm.ts';

let tokenizer: TextTokenizer;
let library: TokenLibrary;

beforeAll(async () => {
  tokenizer = await loadMinilm();
  library = await openMinilm();
});

async function one(text: string, from = tokenizer) {
  const [result] = await from.tokenize([text]);
  if (result === undefined) throw new Error('no result');
  return result;
}

const idsOf = async (text: string) => [...(await one(text)).ids];

describe('single texts against the library itself', () => {
  it('ids of any short text equal the ones the library assembles', async () => {
    await fc.assert(
      fc.asyncProperty(anyText, async (text) => {
        const expected = await library.encodeWithSpecialTokens(text, null);
        expect(await one(text)).toEqual({
          ids: Int32Array.from(expected.ids),
          typeIds: null,
          isTruncated: false,
          totalTokens: expected.ids.length,
          isTotalMinimum: false,
        });
      }),
      { numRuns: 300 },
    );
  });

  it('a long text that was cut in characters keeps the ids of the whole text, and a bound no higher than its count', async () => {
    await fc.assert(
      fc.asyncProperty(longText, fc.constantFrom(8, 64, 256), async (text, maxTokens) => {
        const short = await loadMinilm(maxTokens);
        const [whole = []] = await library.encodeBatch([text.toWellFormed()]);
        const result = await one(text, short);
        expect([...result.ids.slice(1, -1)]).toEqual([...Array.from(whole).slice(0, maxTokens - 2)]);
        expect(result.isTruncated).toBe(whole.length > maxTokens - 2);
        if (result.isTotalMinimum) {
          expect(result.totalTokens).toBeGreaterThan(maxTokens);
          expect(result.totalTokens).toBeLessThanOrEqual(whole.length + 2);
        } else {
          expect(result.totalTokens).toBe(whole.length + 2);
        }
      }),
      { numRuns: 60 },
    );
  }, 120_000);

  it('a cut inside a word never turns its unknown token into the pieces of its start', async () => {
    const short = await loadMinilm(8);
    // Marks are stripped: the word has 2,000 letters, and any piece of 1,000 characters fewer than 100 of them.
    const word = `x${'\u0301'.repeat(10)}`.repeat(2_000);
    for (const wordsBefore of [0, 1, 4, 5, 6]) {
      const text = 'word '.repeat(wordsBefore) + word;
      const [whole = []] = await library.encodeBatch([text]);
      expect([...(await one(text, short)).ids.slice(1, -1)]).toEqual(Array.from(whole).slice(0, 6));
    }
  });

  it('6,000 blanks before two words cost nothing and lose nothing', async () => {
    expect(await one(`${' '.repeat(6_000)}hello world`)).toMatchObject({
      ids: Int32Array.of(101, 7592, 2088, 102),
      totalTokens: 4,
      isTotalMinimum: false,
    });
  });

  it('a word of any length over 100 characters is one unknown token', async () => {
    for (const length of [101, 10_000, 200_000]) expect(await idsOf('a'.repeat(length))).toEqual([101, 100, 102]);
  });

  it('10 MB of words is cut to the limit with the closing token at the end, and says that the count is a minimum', async () => {
    const result = await one('word '.repeat(2_000_000));
    expect([...result.ids]).toEqual([101, ...Array<number>(254).fill(2773), 102]);
    expect(result).toMatchObject({ isTruncated: true, isTotalMinimum: true });
  });

  it('a text of exactly the limit is not truncated and one more token is', async () => {
    expect(await one('word '.repeat(254))).toMatchObject({ isTruncated: false, totalTokens: 256 });
    expect(await one('word '.repeat(255))).toMatchObject({
      isTruncated: true,
      totalTokens: 257,
      isTotalMinimum: false,
    });
  });

  it('half an emoji counts as U+FFFD, a whole one does not', async () => {
    expect(await idsOf('hi \ud83d')).toEqual(await idsOf('hi \ufffd'));
    expect(await idsOf('hi \u{1f600}')).not.toEqual(await idsOf('hi \ufffd'));
  });

  it('newline and tab are white space, other control characters vanish', async () => {
    const expected = await idsOf('one line');
    expect(await idsOf('one\nline')).toEqual(expected);
    expect(await idsOf('one\tline')).toEqual(expected);
    expect(await idsOf('one\u0007line')).toEqual(await idsOf('oneline'));
    expect(await idsOf('oneline')).not.toEqual(expected);
  });

  it('a text has the same ids alone and in any list', async () => {
    const texts = ['', 'a', 'b'.repeat(5_000), 'word '.repeat(9_000), '\u4e2d'.repeat(9_000), ' ', 'x'];
    const together = await tokenizer.tokenize(texts);
    expect(together).toEqual(await Promise.all(texts.map((text) => one(text))));
  });

  it('ids are found by exact token text and unknown ones are left out', () => {
    expect(tokenizer.idsOf(['.', ',', '[SEP]', 'no such token', ''])).toEqual(new Set([1012, 1010, 102]));
  });
});

describe('pairs against the library itself', () => {
  it('ids and segments of any pair equal the ones the library assembles', async () => {
    await fc.assert(
      fc.asyncProperty(anyText, anyText, async (query, passage) => {
        const expected = await library.encodeWithSpecialTokens(query, passage);
        const [pair] = await tokenizer.tokenizePairs(query, [passage]);
        expect([...(pair?.ids ?? [])]).toEqual(expected.ids);
        expect([...(pair?.typeIds ?? [])]).toEqual(expected.typeIds);
        expect(pair).toMatchObject({ isTruncated: false, totalTokens: expected.ids.length });
      }),
      { numRuns: 300 },
    );
  });

  it('a literal [SEP] in a passage is the token, but does not move the border', async () => {
    const [pair] = await tokenizer.tokenizePairs('hello', ['a [SEP] b']);
    expect(pair?.ids).toEqual(Int32Array.of(101, 7592, 102, 1037, 102, 1038, 102));
    expect(pair?.typeIds).toEqual(Uint8Array.of(0, 0, 0, 1, 1, 1, 1));
  });

  it('a passage far over the limit is cut, the query stays whole and the closing token stays last', async () => {
    const query = 'what is a word';
    const [pair] = await tokenizer.tokenizePairs(query, ['word '.repeat(5_000)]);
    const start = [...(await idsOf(query))];
    expect([...(pair?.ids.slice(0, start.length) ?? [])]).toEqual(start);
    expect(pair?.ids).toHaveLength(256);
    expect(pair?.ids.at(-1)).toBe(102);
    expect(pair?.isTruncated).toBe(true);
    const [byHand] = await tokenizer.tokenizePairs(query, ['word '.repeat(256 - start.length - 1)]);
    expect(byHand?.isTruncated).toBe(false);
    expect(pair?.ids).toEqual(byHand?.ids);
    expect(pair?.typeIds).toEqual(byHand?.typeIds);
  });

  it('an empty passage is a pair of the query and nothing', async () => {
    const [pair] = await tokenizer.tokenizePairs('hello', ['']);
    expect(pair?.ids).toEqual(Int32Array.of(101, 7592, 102, 102));
    expect(pair?.typeIds).toEqual(Uint8Array.of(0, 0, 0, 1));
  });

  it('a query that leaves room for one passage token is served, one token more is refused', async () => {
    const [pair] = await tokenizer.tokenizePairs('word '.repeat(252), ['hello world']);
    expect(pair?.ids).toHaveLength(256);
    await expect(tokenizer.tokenizePairs('word '.repeat(253), ['hello'])).rejects.toMatchObject({
      errorName: 'invalidParams',
      data: { field: 'query', tokens: 253, limit: 252 },
    });
    await expect(tokenizer.tokenizePairs('word '.repeat(100_000), ['hello'])).rejects.toMatchObject({
      data: { field: 'query', limit: 252, tokensIsMinimum: true },
    });
  });
});
