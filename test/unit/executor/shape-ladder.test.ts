import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cheapestSplit, rungOf, rungsUpTo } from '../../../src/executor/shape-ladder.ts';

describe('the ladder of lengths', () => {
  it('has every multiple of 8 up to 256, then 16 rungs to each doubling, and ends at what the model takes', () => {
    const eights = Array.from({ length: 32 }, (_, step) => 8 * (step + 1));
    const sixteens = Array.from({ length: 16 }, (_, step) => 256 + 16 * (step + 1));
    expect(rungsUpTo(514)).toEqual([...eights, ...sixteens, 514]);
    expect(rungsUpTo(8192)).toHaveLength(32 + 5 * 16);
    expect(rungsUpTo(5)).toEqual([5]);
  });

  it('gives each length the first rung that holds it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9_000 }), fc.nat(), (maxTokens, seed) => {
        const length = 1 + (seed % maxTokens);
        expect(rungOf(length, maxTokens)).toBe(rungsUpTo(maxTokens).find((rung) => rung >= length));
      }),
    );
  });
});

describe('the split of texts into runs on a GPU', () => {
  const anyRows = fc
    .array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 12 })
    .map((lengths) => lengths.map((length) => rungOf(length, 700)).sort((left, right) => right - left));
  const maxTextsOf = (tokens: number) => 2 ** Math.floor(Math.log2(Math.max(1, 2048 / tokens)));
  /** What a split costs: the tokens of every run, and 256 for each. */
  const costOf = (rows: readonly number[], split: readonly number[]) => {
    let start = 0;
    return split.reduce((cost, texts) => {
      const tokens = rows[start] ?? 0;
      start += texts;
      return cost + texts * tokens + 256;
    }, 0);
  };
  /** Every split into powers of two. */
  const splitsOf = (rows: readonly number[]): number[][] => {
    const [tokens] = rows;
    if (tokens === undefined) return [[]];
    const splits: number[][] = [];
    for (let texts = 1; texts <= maxTextsOf(tokens) && texts < 2 * rows.length; texts *= 2)
      for (const rest of splitsOf(rows.slice(texts))) splits.push([texts, ...rest]);
    return splits;
  };

  it('is into powers of two that hold every text, within what a run may have', () => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        let start = 0;
        for (const texts of cheapestSplit(rows, maxTextsOf)) {
          expect(start).toBeLessThan(rows.length);
          expect(Number.isInteger(Math.log2(texts))).toBe(true);
          expect(texts).toBeLessThanOrEqual(maxTextsOf(rows[start] ?? 0));
          start += texts;
        }
        expect(start).toBeGreaterThanOrEqual(rows.length);
      }),
    );
  });

  it('costs no more than any other', () => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const least = Math.min(...splitsOf(rows).map((split) => costOf(rows, split)));
        expect(costOf(rows, cheapestSplit(rows, maxTextsOf))).toBe(least);
      }),
    );
  });

  it('pads short texts, fills up with copies where they are cheap, and makes another run where they are not', () => {
    const of = (rows: readonly number[]) => cheapestSplit(rows, () => 64);
    expect(of([64, 8])).toEqual([2]);
    expect(of([512, 8])).toEqual([1, 1]);
    expect(of(Array<number>(5).fill(64))).toEqual([8]);
    expect(of(Array<number>(33).fill(128))).toEqual([32, 1]);
    expect(of(Array<number>(5).fill(512))).toEqual([4, 1]);
    expect(of([])).toEqual([]);
  });
});
