import { describe, expect, it } from 'vitest';
import { widenHalves } from '../../../src/model/convert/half.ts';
import { widenFloat16 } from '../../../src/tensor/float16.ts';

// 1, -2, the smallest subnormal, the largest subnormal, 65504, both infinities, both zeros.
const halves = [0x3c00, 0xc000, 0x0001, 0x03ff, 0x7bff, 0x7c00, 0xfc00, 0x0000, 0x8000];
const floats = [1, -2, 2 ** -24, 1023 * 2 ** -24, 65_504, Infinity, -Infinity, 0, -0];

describe('float16 numbers from a device', () => {
  it('are exactly the float32 numbers that their bits mean', () => {
    expect([...widenFloat16(Uint16Array.from(halves))]).toEqual(floats);
    expect(widenFloat16(Uint16Array.of(0x7e00))).toEqual(Float32Array.of(Number.NaN));
  });

  it('are read by their bits, whatever kind of array holds them', () => {
    const { buffer } = Uint16Array.of(0, ...halves, 0);
    const Float16 = (globalThis as { Float16Array?: new (...place: [ArrayBuffer, number, number]) => ArrayBufferView })[
      'Float16Array'
    ];
    // Where Node has no Float16Array, a DataView stands for a view whose elements are no bits either.
    const view =
      Float16 === undefined ? new DataView(buffer, 2, halves.length * 2) : new Float16(buffer, 2, halves.length);
    expect([...widenFloat16(view)]).toEqual(floats);
    expect(widenFloat16(new Uint16Array(buffer, 2, 0))).toEqual(new Float32Array(0));
  });

  it('mean the same as in a weight file, all 65,536 of them', () => {
    const all = Uint16Array.from({ length: 65_536 }, (_, half) => half);
    const bitsOf = (values: Float32Array) => new Uint32Array(values.buffer);
    expect(bitsOf(widenFloat16(all))).toEqual(bitsOf(widenHalves(all)));
  });
});
