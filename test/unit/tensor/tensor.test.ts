import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cosine, sparseCosine } from '../../../src/tensor/cosine.ts';
import { allFinite } from '../../../src/tensor/finite.ts';
import { integerOutputs, quantize } from '../../../src/tensor/quantize.ts';
import { orderByValue, sigmoid } from '../../../src/tensor/score.ts';
import { cutAndNormalize } from '../../../src/tensor/slice.ts';

const vector = (options: { minLength?: number; maxLength?: number } = {}) =>
  fc.float32Array({ min: -2, max: 2, noNaN: true, maxLength: 40, ...options });
const norm = (values: ArrayLike<number>) => Math.hypot(...Array.from(values));

describe('the integer forms of a vector', () => {
  it('int8 is round(127 x) within -128 and 127, uint8 the same plus 128', () => {
    fc.assert(
      fc.property(vector(), (values) => {
        const expected = Array.from(values, (value) => Math.max(-128, Math.min(127, Math.round(value * 127))));
        expect(quantize(values, 'int8')).toEqual(expected);
        expect(quantize(values, 'uint8')).toEqual(expected.map((value) => value + 128));
      }),
    );
  });

  it('ubinary holds the bit of each value above zero, most significant first, and binary is 128 less', () => {
    fc.assert(
      fc.property(vector({ minLength: 1 }), (values) => {
        const bits = Array.from(values, (value) => (value > 0 ? '1' : '0')).join('');
        const bytes = bits.match(/.{1,8}/g)?.map((byte) => Number.parseInt(byte.padEnd(8, '0'), 2));
        expect(quantize(values, 'ubinary')).toEqual(bytes);
        expect(quantize(values, 'binary')).toEqual(bytes?.map((byte) => byte - 128));
      }),
    );
  });

  it('have fixed ranges and hand-computed values', () => {
    const values = Float32Array.of(1, -1, 0, 0.5, -0.5, 2, -2, 1e-9, 0.004);
    expect(quantize(values, 'int8')).toEqual([127, -127, 0, 64, -63, 127, -128, 0, 1]);
    expect(quantize(values, 'uint8')).toEqual([255, 1, 128, 192, 65, 255, 0, 128, 129]);
    expect(quantize(values, 'ubinary')).toEqual([0b10010101, 0b10000000]);
    expect(quantize(values, 'binary')).toEqual([21, 0]);
  });

  it.each(integerOutputs)('%s is whole numbers that print without a sign for zero', (output) => {
    fc.assert(
      fc.property(vector(), (values) => {
        for (const value of quantize(values, output)) expect(String(value)).toMatch(/^(0|-?[1-9]\d*)$/);
      }),
    );
  });
});

describe('a cut vector', () => {
  it('is the prefix at unit length, and zero stays zero', () => {
    fc.assert(
      fc.property(vector({ minLength: 1 }), fc.nat(), (values, seed) => {
        const dimensions = 1 + (seed % values.length);
        const prefix = Array.from(values).slice(0, dimensions);
        const length = norm(prefix);
        const cut = cutAndNormalize(values, dimensions);
        expect(cut).toHaveLength(dimensions);
        expect(allFinite(cut)).toBe(true);
        for (const [at, value] of cut.entries()) {
          expect(value).toBeCloseTo(length === 0 ? 0 : (prefix[at] ?? 0) / length, 5);
        }
      }),
    );
  });

  it('keeps its length where the prefix is tiny', () => {
    expect(norm(cutAndNormalize(Float32Array.of(1e-30, 1e-30, 1), 2))).toBeCloseTo(1, 5);
  });

  it('leaves the whole vector as it was', () => {
    const values = Float32Array.of(3, 4, 5);
    cutAndNormalize(values, 2);
    expect(values).toEqual(Float32Array.of(3, 4, 5));
  });
});

describe('scores', () => {
  it('order best first, equal ones by ascending index', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -3, max: 3 })), (values) => {
        const order = orderByValue(values);
        expect([...order].sort((a, b) => a - b)).toEqual(values.map((_, at) => at));
        for (let at = 1; at < order.length; at += 1) {
          const [better = 0, worse = 0] = [order[at - 1], order[at]];
          const [high = 0, low = 0] = [values[better], values[worse]];
          expect(high > low || (high === low && better < worse)).toBe(true);
        }
      }),
    );
  });

  it('pass through one sigmoid', () => {
    expect(sigmoid(0)).toBe(0.5);
    expect(sigmoid(-6)).toBeCloseTo(0.0024726, 6);
    expect([sigmoid(1000), sigmoid(-1000)]).toEqual([1, 0]);
    fc.assert(
      fc.property(fc.double({ min: -30, max: 30, noNaN: true }), (logit) => {
        expect(sigmoid(logit) + sigmoid(-logit)).toBeCloseTo(1, 12);
      }),
    );
  });
});

describe('the check for real numbers', () => {
  it('finds one NaN or infinity anywhere, and nothing else', () => {
    const bad = fc.constantFrom(Number.NaN, Infinity, -Infinity);
    const anyFinite = fc.float32Array({ noNaN: true, noDefaultInfinity: true, minLength: 1 });
    fc.assert(
      fc.property(anyFinite, bad, fc.nat(), (values, value, at) => {
        expect(allFinite(values)).toBe(true);
        values[at % values.length] = value;
        expect(allFinite(values)).toBe(false);
      }),
    );
  });

  it('is true for nothing at all', () => {
    expect(allFinite(new Float32Array())).toBe(true);
  });
});

describe('the cosine', () => {
  it('is that of the definition, within -1 and 1, and 0 for a zero vector', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: -9, max: 9 }), fc.integer({ min: -9, max: 9 }))), (pairs) => {
        const [a, b] = [pairs.map(([x]) => x), pairs.map(([, y]) => y)];
        const dot = pairs.reduce((sum, [x, y]) => sum + x * y, 0);
        const norms = norm(a) * norm(b);
        expect(cosine(a, b)).toBeCloseTo(norms === 0 ? 0 : dot / norms, 10);
      }),
    );
  });

  it('of terms is that of the dense vectors they stand for', () => {
    const terms = fc.uniqueArray(fc.nat({ max: 20 }), { maxLength: 10 }).chain((indices) =>
      fc.record({
        indices: fc.constant(indices),
        values: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: indices.length, maxLength: indices.length }),
      }),
    );
    const dense = ({ indices, values }: { indices: number[]; values: number[] }) =>
      Array.from({ length: 21 }, (_, index) => values[indices.indexOf(index)] ?? 0);
    fc.assert(
      fc.property(terms, terms, (a, b) => {
        expect(sparseCosine(a, b)).toBeCloseTo(cosine(dense(a), dense(b)), 10);
      }),
    );
  });
});
