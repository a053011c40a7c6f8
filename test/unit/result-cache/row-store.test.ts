import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../../src/config/settings.ts';
import { createRowStore, keptBytesOf, maxRowShare } from '../../../src/result-cache/row-store.ts';

const dense = (length: number, value = 1) => ({ values: new Float32Array(length).fill(value), indices: null });
const sparse = (length: number) => ({ values: new Float32Array(length), indices: new Int32Array(length) });

describe('the kept rows', () => {
  it('never take more memory than their bound, and count exactly what is there', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const step = fc.record({
      name: fc.constantFrom(...names),
      isFind: fc.boolean(),
      row: fc
        .tuple(fc.integer({ min: 0, max: 900 }), fc.boolean())
        .map(([size, isSparse]) => (isSparse ? sparse(size) : dense(size))),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40_000 }), fc.array(step, { maxLength: 60 }), (maxBytes, steps) => {
        const store = createRowStore(maxBytes);
        for (const { name, isFind, row } of steps) {
          if (isFind) store.find(name);
          else store.keep(name, row);
          expect(store.bytes()).toBeLessThanOrEqual(maxBytes);
        }
        const present = names.flatMap((name) => store.find(name) ?? []);
        expect(store.bytes()).toBe(present.reduce((sum, row) => sum + keptBytesOf(row), 0));
      }),
    );
  });

  it('are copies that hold on to nothing else', () => {
    const store = createRowStore(1_000_000);
    const message = new Float32Array(1000).fill(2);
    const row = { values: message.subarray(10, 14), indices: null, shared: [dense(3)] };
    store.keep('a', row);
    message.fill(5);
    const found = store.find('a');
    expect(found).toEqual({ values: Float32Array.of(2, 2, 2, 2), indices: null });
    expect(found?.values.buffer.byteLength).toBe(16);
  });

  it('count both arrays of a sparse row', () => {
    expect(keptBytesOf(sparse(100)) - keptBytesOf(sparse(0))).toBe(800);
    expect(keptBytesOf(dense(100)) - keptBytesOf(dense(0))).toBe(400);
  });

  it('hold no row that is larger than its share', () => {
    const row = dense(200);
    const maxBytes = keptBytesOf(row) / maxRowShare;
    const store = createRowStore(maxBytes);
    store.keep('fits', row);
    store.keep('is one value too long', dense(201));
    expect(store.find('fits')).toEqual(row);
    expect(store.find('is one value too long')).toBeUndefined();
  });

  it('make room by leaving out what was not asked for the longest', () => {
    const store = createRowStore(8 * keptBytesOf(dense(4)));
    for (const name of '12345678') store.keep(name, dense(4));
    store.find('1');
    store.keep('9', dense(4));
    expect(store.find('1')).toEqual(dense(4));
    expect(store.find('2')).toBeUndefined();
  });

  it('of the largest cache are fewer than a Map can hold', () => {
    const maxBytes = 8192 * 1_048_576;
    const schema = settingsSchema.shape.resultCacheBytes;
    expect(schema.safeParse(maxBytes).success).toBe(true);
    expect(schema.safeParse(maxBytes + 1).success).toBe(false);
    expect(maxBytes / keptBytesOf(dense(1))).toBeLessThan(2 ** 24);
  });
});
