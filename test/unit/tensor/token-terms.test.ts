/** Owns the rules of sparse vectors made of single tokens, and of centring a vector before it is cut. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { layerNormReference } from '../../../src/kernels/layer-norm/reference.ts';
import { mergedTokenWeightsReference } from '../../../src/kernels/token-weights/reference.ts';
import { center, cutAndNormalize } from '../../../src/tensor/slice.ts';
import { lookUpTerms, mergeTokenWeights } from '../../../src/tensor/token-terms.ts';

describe('token terms', () => {
  it('merging equals the reference', () => {
    const token = fc.record({ id: fc.integer({ min: 0, max: 9 }), weight: fc.float({ noNaN: true }) });
    fc.assert(
      fc.property(fc.array(token), fc.array(fc.integer({ min: 0, max: 9 })), (tokens, unweighted) => {
        const [ids, weights] = [tokens.map(({ id }) => id), tokens.map(({ weight }) => weight)];
        const found = mergeTokenWeights(Int32Array.from(ids), Float32Array.from(weights), new Set(unweighted));
        const expected = mergedTokenWeightsReference(ids, weights, unweighted);
        expect({ indices: [...found.indices], values: [...found.values] }).toEqual(expected);
      }),
    );
  });

  it('a weight that is not a number stays, so that it is noticed', () => {
    const found = mergeTokenWeights(Int32Array.of(3, 3), Float32Array.of(1, NaN), new Set());
    expect([...found.values]).toEqual([NaN]);
  });

  it('each distinct token is looked up once; one without a weight is no term', () => {
    const found = lookUpTerms(Int32Array.of(2, 1, 2, 0, 9), Float32Array.of(0, 1.5, 2.5));
    expect([...found.indices]).toEqual([1, 2]);
    expect([...found.values]).toEqual([1.5, 2.5]);
  });
});

describe('a centred cut', () => {
  it('is the cut of the layer-normalised vector', () => {
    const vector = [0.9, -0.3, 0.5, 0.1, -0.7, 0.25];
    const normalized = layerNormReference(vector, Array<number>(6).fill(1), Array<number>(6).fill(0));
    const expected = cutAndNormalize(Float32Array.from(normalized), 3);
    const found = cutAndNormalize(center(Float32Array.from(vector)), 3);
    found.forEach((value, index) => {
      expect(value).toBeCloseTo(expected[index] ?? NaN, 6);
    });
    expect(found[0]).not.toBeCloseTo(cutAndNormalize(Float32Array.from(vector), 3)[0] ?? NaN, 3);
  });
});
