import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeFloats } from '../../../src/client/base64.ts';

describe('base64', () => {
  it('gives the numbers that were encoded, bit for bit', () => {
    fc.assert(
      fc.property(fc.float32Array(), (numbers) => {
        const text = Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString('base64');
        expect(decodeFloats(text)).toEqual(new Float32Array(numbers));
      }),
    );
  });

  it.each(['AAA=', 'AAAAA', 'AADCQ!AAAAA=', 'AADC====', '====', 'AADCQgAAAAAAAAAAAAAAA\u00e9=='])(
    'that is not of whole numbers in the standard alphabet (%j) is refused',
    (text) => {
      expect(() => decodeFloats(text)).toThrow(RangeError);
    },
  );
});
