import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonWriter } from '../../../src/rpc/json-writer.ts';

const written = (value: number) => new JsonWriter().float32(value).finish().toString();
const fromBits = (bits: number) => new Float32Array(Uint32Array.of(bits).buffer)[0] ?? 0;

/** Every float32 that is finite, all exponents equally likely. */
const anyFloat = fc
  .tuple(fc.boolean(), fc.integer({ min: 0, max: 254 }), fc.integer({ min: 0, max: 0x7f_ffff }))
  .map(([isNegative, exponent, mantissa]) =>
    fromBits(((isNegative ? 1 << 31 : 0) | (exponent << 23) | mantissa) >>> 0),
  );
/** Floats that a short decimal names. */
const shortDecimal = fc
  .tuple(fc.integer({ min: -9_999_999, max: 9_999_999 }), fc.integer({ min: -20, max: 20 }))
  .map(([digits, exponent]) => Math.fround(Number(`${digits}e${exponent}`)));
/** What vectors hold. */
const component = fc.float({ min: -1, max: 1, noNaN: true });

/** Shortest text by trying every number of digits. */
function shortest(value: number): string {
  for (let digits = 1; digits <= 9; digits += 1) {
    const candidate = Number(value.toPrecision(digits));
    if (Math.fround(candidate) === value) return String(candidate);
  }
  throw new Error('nine digits name every float32');
}

const edges = [
  ...[0, -0, 1, -1, 16_777_216, 16_777_217, 1e7, 9_999_999, 9_999_999.5, 0.1, 0.5, 123_456.79],
  ...[fromBits(0x7f7fffff), fromBits(0x00800000), fromBits(1), fromBits(0x007fffff), fromBits(0x3f7fffff)],
  ...Array.from({ length: 77 }, (_, at) => Math.fround(10 ** (at - 38))),
  ...Array.from({ length: 277 }, (_, at) => 2 ** (at - 149)),
].map(Math.fround);

describe('a float32 as JSON', () => {
  it('reads back to exactly the same float32', () => {
    fc.assert(
      fc.property(fc.oneof(anyFloat, shortDecimal, component), (value) => {
        expect(Math.fround(JSON.parse(written(value)) as number) === value).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });

  it('reads back at powers of two and of ten, the largest, the smallest and the denormals, in their shortest form', () => {
    for (const value of edges.flatMap((edge) => [edge, -edge])) {
      expect(Math.fround(JSON.parse(written(value)) as number) === value, written(value)).toBe(true);
      expect(written(value).length, written(value)).toBeLessThanOrEqual(shortest(value).length);
    }
  });

  it('is never longer than the shortest form found by trying every number of digits', () => {
    fc.assert(
      fc.property(fc.oneof(anyFloat, shortDecimal, component), (value) => {
        expect(written(value).length).toBeLessThanOrEqual(shortest(value).length);
      }),
      { numRuns: 5000 },
    );
  });

  it('is as short where float32 lie further apart than their seventh digit', () => {
    const sparse = fc.float({ min: Math.fround(9.77e-4), max: Math.fround(1e-3), noNaN: true });
    const sixDigits = fc.integer({ min: 977_000, max: 999_999 }).map((digits) => Math.fround(digits / 1e9));
    fc.assert(
      fc.property(fc.oneof(sparse, sixDigits), (value) => {
        expect(written(value).length).toBeLessThanOrEqual(shortest(value).length);
      }),
      { numRuns: 5000 },
    );
  });

  it('takes at most 17 characters between a millionth and ten million', () => {
    const normal = fc.float({ min: Math.fround(1e-6), max: Math.fround(1e7), noNaN: true });
    fc.assert(
      fc.property(normal, fc.constantFrom(1, -1), (value, sign) => {
        expect(written(sign * value).length).toBeLessThanOrEqual(17);
      }),
      { numRuns: 5000 },
    );
  });

  it('has only the forms of a number that JSON allows', () => {
    fc.assert(
      fc.property(fc.oneof(anyFloat, shortDecimal, fc.constantFrom(...edges)), (value) => {
        expect(written(value)).toMatch(/^-?(0|[1-9]\d*)(\.\d+)?(e[+-]\d+)?$/);
      }),
      { numRuns: 5000 },
    );
  });

  it('is complete wherever the buffer ends', () => {
    fc.assert(
      fc.property(fc.oneof(anyFloat, component), fc.nat({ max: 40 }), (value, initialBytes) => {
        const text = new JsonWriter(initialBytes).float32(value).finish().toString();
        expect(text).toBe(written(value));
      }),
      { numRuns: 5000 },
    );
  });
});

describe('the JSON writer', () => {
  it('writes a list that reads back to the same vector', () => {
    fc.assert(
      fc.property(fc.float32Array({ noNaN: true, noDefaultInfinity: true }), (vector) => {
        const text = new JsonWriter(1).float32List(vector).finish().toString();
        expect(Float32Array.from(JSON.parse(text) as number[])).toEqual(vector.map((value) => value + 0));
      }),
    );
  });

  it('keeps the order of texts, numbers and bytes, whatever its first size', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.nat({ max: 10 }), (texts, initialBytes) => {
        const writer = new JsonWriter(initialBytes);
        for (const text of texts) writer.text(text).raw(Buffer.from(text)).float32(0.5);
        expect(writer.finish().toString()).toBe(texts.map((text) => `${text}${text}0.5`).join(''));
      }),
    );
  });
});
