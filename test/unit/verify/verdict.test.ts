/** Owns the rules by which a head is found to agree with transformers.js. */
import { describe, expect, it } from 'vitest';
import type { RunRow } from '../../../src/executor/protocol.ts';
import { countTerms, judge, toleranceOf } from '../../../src/verify/verdict.ts';
import { hasSameIds } from '../../../src/verify/verify-model.ts';

const tolerance = toleranceOf({ precision: 'fp32' });
const row = (values: readonly number[], indices: readonly number[] | null = null): RunRow => ({
  values: Float32Array.from(values),
  indices: indices === null ? null : Int32Array.from(indices),
});
const pair = (served: RunRow, expected: RunRow) => ({ served, expected });

describe('the tolerance', () => {
  it('is 1e-5 of a cosine and 1e-3 of a logit for float32 weights served as they are', () => {
    expect(tolerance).toEqual({ minCosine: 0.99999, maxDifference: 1e-3 });
  });

  it('is that of float16 where float16 weights were widened, since the file holds no more', () => {
    expect(toleranceOf({ precision: 'fp32', conversion: ['widen'] })).toEqual(toleranceOf({ precision: 'fp16' }));
  });

  it('is wider where trivec quantised the weights than where the file has int8 ones', () => {
    const own = toleranceOf({ precision: 'int8', conversion: ['quantize'] });
    expect(own.minCosine).toBeLessThan(toleranceOf({ precision: 'int8' }).minCosine);
  });
});

describe('the judgement', () => {
  it('a vector within the cosine agrees, one beyond it differs with the number as the reason', () => {
    const near = judge({ head: 'dense', texts: 1, pairs: [pair(row([1, 0]), row([1, 0.001]))], tolerance });
    expect(near).toMatchObject({ verdict: 'agrees', reason: null, sameIds: 1 });
    const far = judge({ head: 'dense', texts: 1, pairs: [pair(row([1, 0]), row([1, 0.01]))], tolerance });
    expect(far.verdict).toBe('differs');
    expect(far.reason).toContain('0.99995');
  });

  it('one bad text among good ones is enough to differ', () => {
    const good = pair(row([1, 0]), row([1, 0]));
    const { verdict, likeness } = judge({
      head: 'dense',
      texts: 2,
      pairs: [good, pair(row([1, 0]), row([0, 1]))],
      tolerance,
    });
    expect(verdict).toBe('differs');
    expect(likeness).toMatchObject({ worst: 0, mean: 0.5 });
  });

  it('a logit is judged by its difference, whatever its sign', () => {
    const judged = (served: number, expected: number) =>
      judge({ head: 'logit', texts: 1, pairs: [pair(row([served]), row([expected]))], tolerance }).verdict;
    expect(judged(-2, -2.0009)).toBe('agrees');
    expect(judged(-2, -2.0011)).toBe('differs');
    expect(judged(2, -2)).toBe('differs');
  });

  it('values that are not numbers, and vectors of two lengths, never agree', () => {
    const judged = (served: RunRow, expected: RunRow) =>
      judge({ head: 'rows', texts: 1, pairs: [pair(served, expected)], tolerance }).verdict;
    expect(judged(row([NaN, 1]), row([1, 1]))).toBe('differs');
    expect(judged(row([1, 1]), row([1, 1, 1, 1]))).toBe('differs');
  });

  it('a head for which transformers.js has other ids in every text differs, and one without a text is not compared', () => {
    expect(judge({ head: 'dense', texts: 3, pairs: [], tolerance })).toMatchObject({ verdict: 'differs', sameIds: 0 });
    expect(judge({ head: 'dense', texts: 0, pairs: [], tolerance }).verdict).toBe('notCompared');
  });

  it('terms are counted as shared or as had by one side only', () => {
    const first = pair(row([1, 2, 3], [4, 5, 6]), row([1, 2], [4, 5]));
    const second = pair(row([1], [7]), row([1], [8]));
    expect(countTerms([first, second])).toEqual({ shared: 2, differing: 3 });
    expect(judge({ head: 'sparse', texts: 2, pairs: [first, second], tolerance }).terms).toEqual({
      shared: 2,
      differing: 3,
    });
  });
});

describe('token ids', () => {
  const tokenized = (typeIds: readonly number[] | null) => ({
    tokenized: {
      ids: Int32Array.of(1, 7, 2),
      typeIds: typeIds === null ? null : Uint8Array.from(typeIds),
      isTruncated: false,
      totalTokens: 3,
      isTotalMinimum: false,
    },
  });

  it('are the same only where all of them are', () => {
    expect(hasSameIds(tokenized(null), { ids: [1, 7, 2], typeIds: null }, true)).toBe(true);
    expect(hasSameIds(tokenized(null), { ids: [1, 8, 2], typeIds: null }, true)).toBe(false);
    expect(hasSameIds(tokenized(null), { ids: [1, 7], typeIds: null }, true)).toBe(false);
  });

  it('segments count where the graph takes them, and none are the same as zeros', () => {
    expect(hasSameIds(tokenized([0, 0, 0]), { ids: [1, 7, 2], typeIds: null }, true)).toBe(true);
    expect(hasSameIds(tokenized([0, 0, 1]), { ids: [1, 7, 2], typeIds: [0, 0, 0] }, true)).toBe(false);
    expect(hasSameIds(tokenized([0, 0, 1]), { ids: [1, 7, 2], typeIds: [0, 0, 0] }, false)).toBe(true);
  });
});
