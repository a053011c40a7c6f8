import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keepRows, packTerms, packTopTerms } from '../../../src/executor/rows.ts';

const matrix = { values: Float32Array.of(1, 2, 3, 4, 5, 6), dimension: 2 };

describe('the kept rows', () => {
  it('are all rows where nothing is chosen', () => {
    expect(keepRows(matrix, null)).toEqual(matrix.values);
  });

  it('are the chosen rows in the chosen order, and none where none is chosen', () => {
    expect(keepRows(matrix, Int32Array.of(0, 2))).toEqual(Float32Array.of(1, 2, 5, 6));
    expect(keepRows(matrix, Int32Array.of(2, 1))).toEqual(Float32Array.of(5, 6, 3, 4));
    expect(keepRows(matrix, new Int32Array(0))).toEqual(new Float32Array(0));
  });
});

describe('the packed terms', () => {
  it('unpack to the weights that they came from, with ascending ids and no zero', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.constant(0), fc.float({ noNaN: true })), { maxLength: 50 }), (numbers) => {
        const weights = Float32Array.from(numbers);
        const { values, indices } = packTerms(weights);
        const terms = [...(indices ?? [])];
        expect(values).toHaveLength(terms.length);
        expect(terms).toEqual([...new Set(terms)].sort((a, b) => a - b));
        expect([...values]).not.toContain(0);
        const unpacked = new Float32Array(weights.length);
        for (const [position, term] of terms.entries()) unpacked[term] = values[position] ?? 0;
        expect([...unpacked].every((value, term) => value === weights[term])).toBe(true);
      }),
    );
  });

  it('keep a weight that is not a number, so that it is noticed', () => {
    expect(packTerms(Float32Array.of(0, Number.NaN, Number.POSITIVE_INFINITY))).toEqual({
      values: Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY),
      indices: Int32Array.of(1, 2),
    });
  });
});

describe('the heaviest terms', () => {
  it('give the same row as all weights, wherever there are no more terms than those', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(0, 0.5, 1, 2.5), { minLength: 8, maxLength: 8 }), (numbers) => {
        const weights = Float32Array.from(numbers);
        const heaviest = [...weights.keys()]
          .sort((left, right) => (weights[right] ?? 0) - (weights[left] ?? 0))
          .slice(0, 4);
        const top = Float32Array.from(heaviest, (term) => weights[term] ?? 0);
        const terms = numbers.filter((weight) => weight !== 0).length;
        expect(packTopTerms(top, Float32Array.from(heaviest))).toEqual(terms < 4 ? packTerms(weights) : null);
      }),
    );
  });

  it('are never taken where the last of them is not a number', () => {
    expect(packTopTerms(Float32Array.of(1, Number.NaN), Float32Array.of(3, 5))).toBeNull();
  });
});
