import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { RunFailure } from '../../../src/device/pool.ts';
import { maxSimReference } from '../../../src/kernels/max-sim/reference.ts';
import {
  batchOf,
  dimension,
  endDevices,
  failureOf,
  processTestTimeoutMs,
  removeCache,
  rowOf,
  run,
  startDevice,
  textOf,
  vocabularySize,
} from './real-device.ts';

afterEach(endDevices);
afterAll(removeCache);

describe('a run on the real executor', { timeout: processTestTimeoutMs }, () => {
  it.each(['dense', 'rows', 'sparse'] as const)(
    'gives the same bits for the head %s alone and in any company',
    async (head) => {
      const started = await startDevice();
      const items = [3, 200, 1, 17, 64, 3, 256, 8].map((tokens, seed) => textOf(tokens, seed + 1));
      const together = (await run(started, batchOf(head, items))).rows;
      const reversed = (await run(started, batchOf(head, items.toReversed()))).rows;
      for (const [position, item] of items.entries()) {
        const alone = await rowOf(started, head, item);
        expect(alone.values.some((value) => value !== 0)).toBe(true);
        expect(together[position]).toEqual(alone);
        expect(reversed[items.length - 1 - position]).toEqual(alone);
      }
    },
  );

  it('gives vectors of the declared form, and other vectors for other texts', async () => {
    const started = await startDevice();
    const dense = await rowOf(started, 'dense', textOf(9, 1));
    expect(dense.values).toHaveLength(dimension);
    expect(Math.hypot(...dense.values)).toBeCloseTo(1, 5);
    expect(await rowOf(started, 'dense', textOf(9, 2))).not.toEqual(dense);
    const sparse = await rowOf(started, 'sparse', textOf(9, 1));
    const terms = [...(sparse.indices ?? [])];
    expect(terms).toEqual([...new Set(terms)].sort((a, b) => a - b));
    expect([...sparse.values].every((weight) => weight > 0)).toBe(true);
  });

  it('feeds the segment ids: none is the same as all zero, ones are not', async () => {
    const started = await startDevice();
    const none = await rowOf(started, 'dense', textOf(6, 1));
    expect(await rowOf(started, 'dense', textOf(6, 1, { typeIds: new Uint8Array(6) }))).toEqual(none);
    const ones = textOf(6, 1, { typeIds: new Uint8Array(6).fill(1) });
    expect(await rowOf(started, 'dense', ones)).not.toEqual(none);
    expect(await rowOf(started, 'dense', textOf(6, 1))).toEqual(none);
  });

  it('returns only the kept rows, and compares only them', async () => {
    const started = await startDevice();
    const keptRows = Int32Array.of(0, 3, 4, 9);
    const all = (await rowOf(started, 'rows', textOf(10, 1))).values;
    const kept = (await rowOf(started, 'rows', textOf(10, 1, { keptRows }))).values;
    const rowsOf = (values: Float32Array) =>
      Array.from({ length: values.length / dimension }, (_, row) => [
        ...values.subarray(row * dimension, (row + 1) * dimension),
      ]);
    expect(rowsOf(kept)).toEqual([...keptRows].map((row) => rowsOf(all)[row]));

    const query = (await rowOf(started, 'rows', textOf(5, 2))).values;
    const { rows } = await run(started, {
      ...batchOf('maxSim', [textOf(10, 1, { keptRows }), textOf(10, 1)]),
      queryRows: { values: query, dimension },
    });
    expect(rows[0]?.values[0]).toBeCloseTo(maxSimReference(rowsOf(query), rowsOf(kept)), 4);
    expect(rows[1]?.values[0]).toBeCloseTo(maxSimReference(rowsOf(query), rowsOf(all)), 4);
  });

  it.each([
    ['an id behind the vocabulary', textOf(2, 1, { ids: Int32Array.of(101, vocabularySize) })],
    ['a negative id', textOf(2, 1, { ids: Int32Array.of(101, -1) })],
    ['a token too many', textOf(257, 1)],
    ['no token', textOf(0, 1)],
  ])('refuses %s before the engine sees it, and the next run works', async (_name, item) => {
    const started = await startDevice();
    const failure = await failureOf(run(started, batchOf('dense', [textOf(3, 1), item])));
    expect(failure).toBeInstanceOf(RunFailure);
    expect(failure).toMatchObject({ kind: 'runFailed', message: expect.stringContaining('item 1') as string });
    expect((await rowOf(started, 'dense', textOf(3, 1))).values).toHaveLength(dimension);
    expect(started.exits).toEqual([]);
  });
});
