/** Owns the rules of the conversion between float16 and float32. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxFloat16, narrowFloats, widenHalves } from '../../../src/model/convert/half.ts';

/** Value of a float16 by the definition of its fields. */
function valueOf(half: number): number {
  const sign = half >= 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

const all = Uint16Array.from({ length: 65_536 }, (_, half) => half);
const isFinite16 = (half: number) => (half & 0x7c00) !== 0x7c00;

describe('widenHalves', () => {
  it('every float16 keeps its exact value, subnormals, infinities, zeros of both signs and NaN too', () => {
    const widened = widenHalves(all);
    expect(widened).toHaveLength(65_536);
    const wrong = [...all].filter((half) => !Object.is(widened[half], valueOf(half)));
    expect(wrong).toEqual([]);
  });
});

describe('narrowFloats', () => {
  it('every finite float16 comes back from float32 bit for bit', () => {
    const finite = all.filter(isFinite16);
    expect(narrowFloats(widenHalves(finite))).toEqual(finite);
  });

  it('a value becomes the nearest float16, the even one where two are equally near', () => {
    const finite = [...all.filter(isFinite16)].map(valueOf);
    const positive = finite.filter((value) => value >= 0).sort((a, b) => a - b);
    fc.assert(
      fc.property(fc.float({ min: 0, max: 65_504, noNaN: true }), fc.boolean(), (size, isNegative) => {
        const value = isNegative ? -size : size;
        const [half = 0] = narrowFloats(Float32Array.of(value));
        const above = positive.findIndex((candidate) => candidate >= size);
        const neighbours = [positive[above] ?? 0, positive[Math.max(0, above - 1)] ?? 0];
        const error = Math.min(...neighbours.map((neighbour) => Math.abs(neighbour - size)));
        expect(Math.abs(Math.abs(valueOf(half)) - size)).toBe(error);
        expect(half >= 0x8000).toBe(Object.is(value, -0) || value < 0);
        const isTie = neighbours.every((neighbour) => Math.abs(neighbour - size) === error) && error > 0;
        if (isTie) expect(half % 2).toBe(0);
      }),
      {
        numRuns: 300,
        examples: [
          [2 ** -25, false],
          [3 * 2 ** -25, false],
          [1 + 2 ** -11, true],
          [2049, false],
          [2051, true],
        ],
      },
    );
  });

  it('what is beyond the range becomes its end, on both sides, infinities too', () => {
    const beyond = Float32Array.of(65_519, 65_520, 1e9, Infinity, -65_520, -3.4e38, -Infinity);
    const [one, ...others] = [...narrowFloats(beyond)].map(valueOf);
    expect(one).toBe(maxFloat16);
    expect(others).toEqual([...Array<number>(3).fill(maxFloat16), ...Array<number>(3).fill(-maxFloat16)]);
  });

  it('NaN stays NaN', () => {
    expect(valueOf(narrowFloats(Float32Array.of(NaN))[0] ?? 0)).toBeNaN();
  });
});
