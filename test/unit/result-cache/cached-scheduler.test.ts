import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { RunItem } from '../../../src/executor/protocol.ts';
import { withResultCache } from '../../../src/result-cache/cached-scheduler.ts';
import { createRowStore } from '../../../src/result-cache/row-store.ts';
import type { Job } from '../../../src/schedule/call.ts';
import type { Scheduler } from '../../../src/schedule/scheduler.ts';
import { itemOf } from '../schedule/fake-pool.ts';
import { createRig, idle } from '../schedule/rig.ts';
import { createFakeScheduler, rejectionOf } from '../task/fakes.ts';

const cancelled = new ServiceError('cancelled', 'The call was cancelled');
const items = (...ids: number[]): RunItem[] => ids.map((id) => itemOf(id));
const jobOf = (its: readonly RunItem[], rest: Partial<Job> = {}): Job => ({
  key: { modelId: 'm', head: 'dense', queryRows: null },
  lane: 'bulk',
  items: its,
  signal: new AbortController().signal,
  fieldOf: (index) => `inputs[${index}]`,
  onItemDone: null,
  ...rest,
});
const load = { items: 4, tokens: 4 };
const none = { queueMs: 0, computeMs: 0, device: null };

function createCached<S extends Scheduler>(inner: S) {
  const told: { hits: number; misses: number }[] = [];
  const store = createRowStore(1_000_000);
  const onLookUp = (found: { hits: number; misses: number }) => told.push(found);
  const scheduler = withResultCache(inner, { store, identityOf: (modelId) => `${modelId}@1`, onLookUp });
  const run = (job: Job) => scheduler.admit('m', load, 1000).run(job);
  return { inner, scheduler, store, told, run };
}
const valuesOf = (outcome: { rows: readonly { values: Float32Array }[] }) =>
  outcome.rows.map(({ values }) => values[0]);

describe('a scheduler with a result cache', () => {
  it('answers what it has with equal values and without a run, in no time and on no device', async () => {
    const { inner, run, told } = createCached(createFakeScheduler());
    const first = await run(jobOf(items(5, 6)));
    const second = await run(jobOf(items(6, 5)));
    expect(second).toEqual({ rows: [first.rows[1], first.rows[0]], ...none });
    expect(inner.jobs).toHaveLength(1);
    expect(told).toEqual([
      { hits: 0, misses: 2 },
      { hits: 2, misses: 0 },
    ]);
  });

  it('runs only what it does not have, and gives all rows in the order of the items', async () => {
    const { inner, run } = createCached(createFakeScheduler());
    await run(jobOf(items(2, 4)));
    const outcome = await run(jobOf(items(1, 2, 3, 4, 5)));
    expect(valuesOf(outcome)).toEqual([1, 2, 3, 4, 5]);
    expect(outcome).toMatchObject({ queueMs: 2.4, computeMs: 3.6, device: 'cpu:0' });
    const job = inner.jobs[1];
    expect(job?.items.map(({ ids }) => ids[0])).toEqual([1, 3, 5]);
    expect(job?.items.map((_, index) => job.fieldOf(index))).toEqual(['inputs[0]', 'inputs[2]', 'inputs[4]']);
  });

  it('tells every item as done once, found or run', async () => {
    const { run } = createCached(createFakeScheduler());
    await run(jobOf(items(2)));
    let doneCount = 0;
    await run(jobOf(items(1, 2, 3), { onItemDone: () => (doneCount += 1) }));
    expect(doneCount).toBe(3);
  });

  it('shares no row between heads, models or queries', async () => {
    const { inner, run } = createCached(createFakeScheduler());
    const queryRows = (value: number) => ({ values: Float32Array.of(value), dimension: 1 });
    const keys: Job['key'][] = [
      { modelId: 'm', head: 'dense', queryRows: null },
      { modelId: 'm', head: 'logit', queryRows: null },
      { modelId: 'n', head: 'dense', queryRows: null },
      { modelId: 'm', head: 'maxSim', queryRows: queryRows(1) },
      { modelId: 'm', head: 'maxSim', queryRows: queryRows(2) },
    ];
    for (const key of [...keys, ...keys]) await run(jobOf(items(7), { key }));
    expect(inner.jobs.map(({ key }) => key)).toEqual(keys);
  });

  it('keeps nothing of a call that was cancelled while it ran', async () => {
    const { inner, run, store } = createCached(createFakeScheduler());
    inner.hang();
    const controller = new AbortController();
    const outcome = rejectionOf(run(jobOf(items(1, 2), { signal: controller.signal })));
    await new Promise((resolve) => setImmediate(resolve));
    expect(inner.jobs).toHaveLength(1);
    controller.abort(cancelled);
    expect(await outcome).toBe(cancelled);
    expect(store.bytes()).toBe(0);
  });

  it('keeps nothing of a call of which one item failed', async () => {
    const { scheduler, pool } = createRig({
      answer: ({ items: its }) =>
        its.map(({ ids }) => ({ values: Float32Array.of(ids[0] === 9 ? NaN : 1), indices: null })),
    });
    const { run, store } = createCached(scheduler);
    const error = await rejectionOf(run(jobOf(items(1, 9))));
    await pool.settle();
    expect(error.errorName).toBe('internal');
    expect(error.data.field).toBe('inputs[1]');
    expect(store.bytes()).toBe(0);
  });

  it('a cancelled call gets its reason though every row is there', async () => {
    const { run, told } = createCached(createFakeScheduler());
    await run(jobOf(items(1)));
    expect(await rejectionOf(run(jobOf(items(1), { signal: AbortSignal.abort(cancelled) })))).toBe(cancelled);
    expect(told).toHaveLength(1);
  });

  it('a call that is cancelled while a long list is looked up runs nothing', async () => {
    const { inner, run } = createCached(createFakeScheduler());
    const controller = new AbortController();
    const outcome = rejectionOf(
      run(jobOf(items(...Array.from({ length: 2000 }, (_, id) => id)), { signal: controller.signal })),
    );
    controller.abort(cancelled);
    expect(await outcome).toBe(cancelled);
    expect(inner.jobs).toEqual([]);
  });

  it('lets others have their turn while a long list is looked up and kept', async () => {
    const { run } = createCached(createFakeScheduler());
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await run(jobOf(items(...Array.from({ length: 2000 }, (_, id) => id))));
    isOver = true;
    expect(turns).toBeGreaterThan(10);
  });

  it('gives back with its admission what needed no run', async () => {
    const { scheduler: inner, pool } = createRig({ executors: 1, maxQueuedItems: 3 });
    const { scheduler } = createCached(inner);
    const call = async (its: readonly RunItem[]) => {
      const admission = scheduler.admit('m', { items: its.length, tokens: 100 }, 1000);
      try {
        return await admission.run(jobOf(its));
      } finally {
        admission.release();
      }
    };
    const first = call(items(1, 2));
    await pool.settle();
    await pool.pending[0]?.succeed();
    await first;
    expect(await call(items(2, 1, 2))).toMatchObject(none);
    const mixed = call(items(1, 2, 3));
    await pool.settle();
    expect(pool.batches.at(-1)?.items).toHaveLength(1);
    await pool.pending[0]?.succeed();
    expect(valuesOf(await mixed)).toEqual([1, 2, 3]);
    expect(inner.gauges).toEqual(idle);
    expect(inner.predictedDrainMs()).toBe(0);
    expect(() => scheduler.admit('m', { items: 3, tokens: 3 }, 1000)).not.toThrow();
  });
});
