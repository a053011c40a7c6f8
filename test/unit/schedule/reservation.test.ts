import { describe, expect, it } from 'vitest';
import type { Job } from '../../../src/schedule/call.ts';
import { itemOf } from './fake-pool.ts';
import { createRig, idle } from './rig.ts';

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
    expect(scheduler.gauges).toEqual({ queuedItems: 3, queuedTokens: 3, runningItems: 0 });
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
    const drainOfBoth = scheduler.predictedDrainMs();
    const running = admission.run({ ...job(1), items: [itemOf(1, 50)] });
    await pool.settle();
    expect(scheduler.predictedDrainMs()).toBeCloseTo((drainOfBoth * 7) / 8, 9);
    await pool.pending[0]?.succeed();
    await running;
    admission.release();
    expect(scheduler.predictedDrainMs()).toBeGreaterThan(0);
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
