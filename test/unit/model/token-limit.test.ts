/** Owns the rules of a model's length limit. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { believableTokens, smallestLimit, usablePositions } from '../../../src/model/token-limit.ts';

describe('length limit', () => {
  it.each([1e30, 0, -1, '512', undefined, null, NaN, 1.5, 1_000_001])('%s is no believable limit', (value) => {
    expect(believableTokens(value)).toBeNull();
  });

  it('the smallest believable limit counts', () => {
    expect(smallestLimit([512, null, 256, 514])).toBe(256);
    expect(smallestLimit([null, null])).toBeNull();
  });

  it('positions of the RoBERTa family start behind the padding id', () => {
    expect(usablePositions('xlm-roberta', 514, 1)).toBe(512);
    expect(usablePositions('roberta', 66, 1)).toBe(64);
    expect(usablePositions('bert', 512, 0)).toBe(512);
    expect(usablePositions('bert', undefined, 0)).toBeNull();
  });

  it('a limit is never above any believable statement', () => {
    fc.assert(
      fc.property(fc.array(fc.anything()), (statements) => {
        const believable = statements.map(believableTokens);
        const limit = smallestLimit(believable);
        expect(believable.every((one) => one === null || (limit ?? Infinity) <= one)).toBe(true);
      }),
    );
  });
});
