import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Job } from '../../../src/schedule/call.ts';
import { itemOf } from './fake-pool.ts';
import { createRig, idle } from './rig.ts';
import { shapeOf } from './shapes.ts';

const overloaded = expect.objectContaining({ errorName: 'overloaded' });
const job = (count: number): Job => ({
  key: { modelId: 'm', head: 'dense', queryRows: null },
  lane: 'interactive',
  items: Array.from({ length: count }, (_, at) => itemOf(at)),
  signal: new AbortController().signal,
  fieldOf: String,
  onItemDone: null,
});

describe('a reservation', () => {
  it('counts against the queue before anything runs, and no longer once it is released', () => {
    const { scheduler } = createRig({ executors: 0, maxQueuedItems: 5 });
    const first = scheduler.admit('m', { items: 5, tokens: 5 }, 1000);
    expect(() => scheduler.admit('m', { items: 1, tokens: 1 }, 1000)).toThrow(overloaded);
    first.release();
    const second = scheduler.admit('m', { items: 5, tokens: 5 }, 1000);
    second.release();
  });

  it('is given back once, however often it is released', () => {
    const { scheduler } = createRig({ executors: 0, maxQueuedItems: 5 });
    const first = scheduler.admit('m', { items: 2, tokens: 2 }, 1000);
    const second = scheduler.admit('m', { items: 3, tokens: 3 }, 1000);
    first.release();
    first.release();
    expect(() => scheduler.admit('m', { items: 3, tokens: 3 }, 1000)).toThrow(overloaded);
    second.release();
  });

  it('becomes queued items when it runs, neither counted twice nor lost', async () => {
    const { scheduler, pool } = createRig({ executors: 0, maxQueuedItems: 5 });
    const admission = scheduler.admit('m', { items: 3, tokens: 30 }, 1000);
    void admission.run(job(3));
    await pool.settle();
    expect(scheduler.gauges).toEqual({ ...idle, queuedItems: 3, queuedTokens: 3, queuedMs: 3 });
    expect(() => scheduler.admit('m', { items: 3, tokens: 3 }, 1000)).toThrow(overloaded);
    expect(() => scheduler.admit('m', { items: 2, tokens: 2 }, 1000)).not.toThrow();
    admission.release();
  });

  it('covers several jobs, and what was never run comes back', async () => {
    const { scheduler, pool } = createRig({ executors: 1, maxQueuedItems: 4 });
    const admission = scheduler.admit('m', { items: 4, tokens: 4 }, 1000);
    const first = admission.run(job(1));
    await pool.settle();
    await pool.pending[0]?.succeed();
    await first;
    admission.release();
    expect(scheduler.gauges).toEqual(idle);
    expect(scheduler.predictedDrainMs()).toBe(0);
  });

  it('gives back no more than it held when the items have more tokens than was estimated', async () => {
    const { scheduler, pool } = createRig({ executors: 1 });
    const other = scheduler.admit('m', { items: 1, tokens: 7 }, 1000);
    const admission = scheduler.admit('m', { items: 1, tokens: 1 }, 1000);
    expect(scheduler.predictedDrainMs()).toBe(7 + 1);
    const running = admission.run({ ...job(1), items: [itemOf(1, 50)] });
    await pool.settle();
    expect(scheduler.predictedDrainMs()).toBe(7 + 50);
    await pool.pending[0]?.succeed();
    await running;
    admission.release();
    expect(scheduler.predictedDrainMs()).toBe(7);
    other.release();
    expect(scheduler.predictedDrainMs()).toBe(0);
  });

  it('is one for every shape: one text, a list of one and a rerank of one passage meet the same full queue', () => {
    const { scheduler } = createRig({ executors: 0, maxQueuedItems: 2 });
    scheduler.admit('m', { items: 2, tokens: 2 }, 1000);
    for (const items of [1, 1, 2]) {
      expect(() => scheduler.admit('m', { items, tokens: items }, 1000)).toThrow(overloaded);
    }
  });
});

describe('the predicted drain', () => {
  it('is the expected time of all that is reserved, waits or runs, shared by the executors', async () => {
    const { scheduler, pool, start } = createRig({ executors: 2, maxBatchItems: 1 });
    const reservation = scheduler.admit('m', { items: 2, tokens: 20 }, 1000);
    expect(scheduler.predictedDrainMs()).toBe(20 / 2);
    start([itemOf(1, 4), itemOf(2, 6), itemOf(3, 10)]);
    await pool.settle();
    expect(scheduler.gauges).toMatchObject({ queuedMs: 4, runningMs: 16 });
    expect(scheduler.predictedDrainMs()).toBe((20 + 20) / 2);
    await pool.pending[0]?.succeed();
    expect(scheduler.predictedDrainMs()).toBe((20 + 10) / 2);
    reservation.release();
    expect(scheduler.predictedDrainMs()).toBe(10 / 2);
    while (pool.pending[0] !== undefined) await pool.pending[0].succeed();
    expect(scheduler.predictedDrainMs()).toBe(0);
  });

  it('decides what a refused caller is told to wait: until there is room for it', async () => {
    const { scheduler, pool, start } = createRig({ executors: 2, maxBatchItems: 1, maxQueuedItems: 2 });
    start([itemOf(1, 400), itemOf(2, 400), itemOf(3, 400), itemOf(4, 400)]);
    await pool.settle();
    // Two of the four wait, for one of which there would have to be room.
    expect(() => scheduler.admit('m', { items: 1, tokens: 1 }, 60_000)).toThrow(
      expect.objectContaining({ errorName: 'overloaded', data: expect.objectContaining({ retryAfterMs: 400 }) }),
    );
  });

  it('refuses at once what would probably not end before its deadline', async () => {
    const { scheduler, pool, start } = createRig({ maxBatchItems: 1 });
    start([itemOf(1, 500), itemOf(2, 500)]);
    await pool.settle();
    // 1,000 ms of work, turns shared with as much again, and itself, within four fifths of the time.
    expect(() => scheduler.admit('m', { items: 1, tokens: 1 }, 2501)).toThrow(overloaded);
    expect(() => scheduler.admit('m', { items: 1, tokens: 1 }, 2502)).not.toThrow();
  });

  it('of reservations returns to exactly zero, in whatever order and parts they are given back', () => {
    const anyReservation = fc.record({
      items: fc.integer({ min: 0, max: 9 }),
      tokens: fc.integer({ min: 0, max: 99 }),
      order: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(anyReservation, { maxLength: 12 }), (wanted) => {
        const limits = { maxBatchItems: 4, maxBatchTokens: 64 };
        const cost = { fixedMs: 0.1, tokenMs: 0.7, squaredTokenMs: 0.003 };
        const { scheduler } = createRig({ executors: 3, shape: shapeOf({ kind: 'alone', limits, cost }) });
        const held = wanted.map(({ order, ...load }) => ({ order, ...scheduler.admit('m', load, 1e9) }));
        held.sort((left, right) => left.order - right.order);
        for (const { release } of held) {
          release();
          expect(scheduler.predictedDrainMs()).toBeGreaterThanOrEqual(0);
        }
        expect(scheduler.predictedDrainMs()).toBe(0);
      }),
    );
  });
});
