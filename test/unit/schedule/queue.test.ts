import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxOvertakings, sharingCount, WaitingQueue, type WaitingCall } from '../../../src/schedule/queue.ts';
import type { Item } from '../../../src/schedule/item.ts';
import { itemOf } from './fake-pool.ts';
import { createRig } from './rig.ts';

const key = { modelId: 'm', head: 'dense', queryRows: null } as const;
/** A call of which only the number of its items matters. */
const callOf = (items: number): WaitingCall => ({ key, waiting: Array.from({ length: items }, () => ({}) as Item) });

/** A queue whose bulk lane holds these calls, in this order. */
function queueOf(calls: readonly WaitingCall[]): WaitingQueue<WaitingCall> {
  const queue = new WaitingQueue<WaitingCall>();
  queue.lanes.bulk.push(...calls);
  return queue;
}

describe('calls that take turns', () => {
  it('are eight at least, and as many as have 64 items together', () => {
    const counts = (sizes: readonly number[]) => sharingCount(sizes.map(callOf));
    expect(counts([])).toBe(0);
    expect(counts(Array<number>(5).fill(3))).toBe(5);
    expect(counts(Array<number>(20).fill(16))).toBe(8);
    expect(counts(Array<number>(100).fill(1))).toBe(64);
  });

  it('are not joined by one that comes, which goes before longer ones that wait behind them', () => {
    const taking = Array.from({ length: 8 }, () => callOf(100));
    const [long, short] = [callOf(50), callOf(5)];
    const queue = queueOf([...taking, short, long]);
    const middle = callOf(20);
    queue.add(middle, 'bulk');
    expect(queue.lanes.bulk).toEqual([...taking, short, middle, long]);
  });

  it(`are waited for by no call for ever: ${maxOvertakings} shorter ones come before it, and no more`, () => {
    const long = callOf(50);
    const queue = queueOf([...Array.from({ length: 8 }, () => callOf(100)), long]);
    for (let count = 0; count < maxOvertakings + 5; count += 1) queue.add(callOf(1), 'bulk');
    expect(queue.lanes.bulk.indexOf(long)).toBe(8 + maxOvertakings);
  });

  it('end before others begin, so that a full queue answers as much as an empty one', async () => {
    const { pool, start } = createRig({ maxBatchItems: 1 });
    const texts = (call: number) => Array.from({ length: 16 }, (_, text) => itemOf(100 * call + text));
    const calls = Array.from({ length: 40 }, (_, call) => start(texts(call + 1)));
    await pool.settle();
    while (calls.every((call) => call.settled() === undefined)) await pool.pending[0]?.succeed();
    const begun = new Set(pool.batches.flatMap(({ items }) => items.map(({ ids }) => Math.floor((ids[0] ?? 0) / 100))));
    // Calls that are nearly done have few items left, so that some more have come to share the turns.
    expect(begun.size).toBeLessThanOrEqual(16);
  });

  it('keep their number and their items, whatever is added and taken', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 60 }), (sizes) => {
        const queue = new WaitingQueue<WaitingCall>();
        const calls = sizes.map(callOf);
        for (const call of calls) queue.add(call, 'bulk');
        expect(new Set(queue.lanes.bulk)).toEqual(new Set(calls));
        for (let [lead] = queue.lanes.bulk; lead !== undefined; [lead] = queue.lanes.bulk) {
          const left = lead.waiting.length;
          const items = lead.waiting.slice(0, 7).map((item) => ({ call: lead, item }));
          queue.take({ lane: 'bulk', items, expectedMs: 1 });
          expect(lead.waiting).toHaveLength(Math.max(0, left - 7));
          expect(queue.lanes.bulk.includes(lead)).toBe(left > 7);
        }
        expect(queue.isEmpty).toBe(true);
      }),
    );
  });
});
