import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { heaviestTerms } from '../../../src/tensor/heaviest-terms.ts';

const terms = (weights: Readonly<Record<number, number>>) => ({
  indices: Int32Array.from(Object.keys(weights), Number),
  values: Float32Array.from(Object.values(weights)),
});

describe('the heaviest terms', () => {
  it('stay in the order of their ids, with their own weights', () => {
    expect(heaviestTerms(terms({ 1: 0.5, 4: 3, 7: 0.25, 9: 2 }), 3)).toEqual(terms({ 1: 0.5, 4: 3, 9: 2 }));
  });

  it('are chosen apart from the sign, and keep it', () => {
    expect(heaviestTerms(terms({ 1: 0.5, 4: -3, 7: 1 }), 2)).toEqual(terms({ 4: -3, 7: 1 }));
  });

  it('are those with smaller ids where weights are equal', () => {
    expect(heaviestTerms(terms({ 2: 1, 3: 1, 8: 2, 9: 1 }), 2)).toEqual(terms({ 2: 1, 8: 2 }));
  });

  it('include what is not a number, so that it is noticed', () => {
    expect(heaviestTerms(terms({ 2: 1, 3: NaN, 8: 2 }), 1)).toEqual(terms({ 3: NaN }));
  });

  it('are all terms where there is no limit or there are no more', () => {
    const all = terms({ 2: 1, 3: 4 });
    expect(heaviestTerms(all, null)).toBe(all);
    expect(heaviestTerms(all, 2)).toBe(all);
  });

  it('never weigh less than one that was left out', () => {
    const weight = fc.integer({ min: -5, max: 5 });
    fc.assert(
      fc.property(fc.array(weight, { maxLength: 20 }), fc.integer({ min: 1, max: 20 }), (weights, maxTerms) => {
        const all = terms(Object.fromEntries(weights.entries()));
        const { indices, values } = heaviestTerms(all, maxTerms);
        expect(indices).toHaveLength(Math.min(maxTerms, weights.length));
        expect([...values]).toEqual([...indices].map((id) => weights[id]));
        const dropped = weights.filter((_, id) => !indices.includes(id)).map(Math.abs);
        expect(Math.max(0, ...dropped)).toBeLessThanOrEqual(Math.min(Infinity, ...[...values].map(Math.abs)));
      }),
    );
  });
});
