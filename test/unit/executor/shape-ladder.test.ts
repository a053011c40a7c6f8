import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rungOf, rungsUpTo, textsOfRun } from '../../../src/executor/shape-ladder.ts';

describe('the ladder of lengths', () => {
  it('has every multiple of 8 up to 64, then two rungs to each doubling, and ends at what the model takes', () => {
    expect(rungsUpTo(514)).toEqual([8, 16, 24, 32, 40, 48, 56, 64, 96, 128, 192, 256, 384, 512, 514]);
    expect(rungsUpTo(8192)).toHaveLength(22);
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

describe('the texts of a run on a GPU', () => {
  it('are all of them where a few copies fill it up, else a power of two', () => {
    expect(textsOfRun(5, 64)).toBe(5);
    expect(textsOfRun(33, 128)).toBe(32);
    expect(textsOfRun(31, 512)).toBe(31);
    expect(textsOfRun(3, 8192)).toBe(2);
    expect(textsOfRun(8, 512)).toBe(8);
  });
});
