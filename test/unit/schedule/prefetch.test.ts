import { describe, expect, it } from 'vitest';
import { maxUrgentInARow } from '../../../src/executor/run-queue.ts';
import { maxInteractiveInARow, maxSliceMs } from '../../../src/schedule/batcher.ts';
import { maxLostStarts } from '../../../src/schedule/loop.ts';
import { itemOf, type PendingRun } from './fake-pool.ts';
import { createRig, errorOf, firstValues, idle } from './rig.ts';

const bulk = { lane: 'bulk' } as const;
const range = (count: number, from = 0) => Array.from({ length: count }, (_, at) => itemOf(from + at));
const idsIn = ({ batch }: Pick<PendingRun, 'batch'>) => batch.items.map(({ ids }) => ids[0]);

describe('an item that finds room', () => {
  it('starts in the same turn: no time passes first', () => {
    const { start, pool, clock } = createRig({ executors: 2 });
    start([itemOf(1)]);
    start([itemOf(2)], bulk);
    expect(pool.given.map(idsIn)).toEqual([[1], [2]]);
    expect([clock.nowMs(), clock.pendingTimers()]).toEqual([0, 0]);
  });

  it('starts once an executor is free, without being waited for', async () => {
    const { start, pool, clock } = createRig();
    start([itemOf(1)]);
    start([itemOf(2)]);
    expect(pool.given.map(idsIn)).toEqual([[1]]);
    await pool.pending[0]?.succeed();
    expect(pool.given.map(idsIn)).toEqual([[1], [2]]);
    expect(clock.pendingTimers()).toBe(0);
  });
});

describe('a second batch', () => {
  it('is given to a busy executor only where more waits than there are executors', () => {
    const { start, pool } = createRig({ executors: 2, maxBatchItems: 1 });
    start(range(4));
    expect(pool.given.map(idsIn)).toEqual([[0], [1]]);
    start([itemOf(9)]);
    expect(pool.given.map(idsIn)).toEqual([[0], [1], [2]]);
    start([itemOf(8)]);
    expect(pool.given.map(idsIn)).toEqual([[0], [1], [2], [9]]);
  });

  it('is the last that an executor is given, however much waits', () => {
    const { start, pool, scheduler } = createRig({ executors: 2, maxBatchItems: 2 });
    start(range(50), bulk);
    expect(pool.given.map(({ executorId }) => executorId).sort()).toEqual(['cpu:0/0', 'cpu:0/0', 'cpu:0/1', 'cpu:0/1']);
    expect(scheduler.gauges).toMatchObject({ runningItems: 8, queuedItems: 42 });
  });

  it('takes no more of a lane than its slice', () => {
    const { start, pool } = createRig({ maxBatchItems: 1000, maxBatchTokens: 100_000 });
    start(range(500), bulk);
    start(range(500, 500));
    expect(pool.given.map(({ expectedMs }) => expectedMs)).toEqual([
      maxSliceMs.bulk,
      maxSliceMs.bulk,
      maxSliceMs.interactive,
    ]);
  });

  it('counts what it waited behind another as waiting', async () => {
    const { start, pool, clock, told } = createRig({ maxBatchItems: 1 });
    const call = start(range(3));
    expect(pool.given).toHaveLength(2);
    await clock.advance(30);
    await pool.pending[0]?.succeed();
    await clock.advance(20);
    await pool.pending[0]?.succeed();
    await pool.pending[0]?.succeed();
    expect(told.runs.map(({ queueMs }) => queueMs)).toEqual([0, 30, 50]);
    expect(call.settled()).toMatchObject({ value: { queueMs: 0 } });
  });
});

describe('what is urgent', () => {
  it('goes before a queued bulk batch, which then has its turn', async () => {
    const { start, pool } = createRig({ maxBatchItems: 1 });
    start(range(5), bulk);
    expect(pool.given.map(idsIn)).toEqual([[0], [1]]);
    start([itemOf(9)]);
    expect(pool.given.map(({ batch, isUrgent }) => [batch.items[0]?.ids[0], isUrgent])).toEqual([
      [0, false],
      [1, false],
      [9, true],
    ]);
    await pool.pending[0]?.succeed();
    expect(pool.pending.map(idsIn)).toEqual([[9]]);
    await pool.pending[0]?.succeed();
    expect(pool.pending.map(idsIn)).toEqual([[1]]);
  });

  it(`goes before a queued bulk batch ${maxUrgentInARow} times in a row, and then that has its turn`, async () => {
    const { start, pool } = createRig({ maxBatchItems: 1 });
    start(range(4), bulk);
    const order: (number | undefined)[] = [];
    for (let step = 0; step < 24; step += 1) {
      start([itemOf(100 + step)]);
      order.push(...pool.pending.flatMap(idsIn));
      await pool.pending[0]?.succeed();
    }
    const bulkAt = order.flatMap((id, at) => (id !== undefined && id < 100 ? [at] : []));
    expect(bulkAt[1]).toBe(1 + maxUrgentInARow);
    const gaps = bulkAt.slice(1).map((at, run) => at - (bulkAt[run] ?? 0) - 1);
    expect(gaps).toHaveLength(3);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(maxUrgentInARow);
  });

  it('does not keep a lone bulk item of any model from executors that are never idle', async () => {
    const { start, pool } = createRig({ maxBatchItems: 1 });
    const isDone = (lone: ReturnType<typeof start>) => lone.settled() !== undefined;
    for (const modelId of ['m', 'n']) {
      let serial = 1000;
      start(range(6, (serial += 10)));
      const lone = start([itemOf(1)], { lane: 'bulk', key: { modelId, head: 'dense', queryRows: null } });
      let runs = 0;
      for (; runs < 50 && !isDone(lone); runs += 1) {
        start([itemOf((serial += 1))]);
        start([itemOf((serial += 1))]);
        await pool.pending[0]?.succeed();
      }
      // What ran or was given before it came, those that may overtake it, and itself.
      expect(runs).toBeLessThanOrEqual(2 + maxInteractiveInARow + 1);
    }
  });

  it('of one model does not keep an item of another from executors that are never idle', async () => {
    const { start, pool } = createRig({ maxBatchItems: 1 });
    let serial = 100;
    start(range(6, serial));
    const lone = start([itemOf(1)], { key: { modelId: 'n', head: 'dense', queryRows: null } });
    let runs = 0;
    for (; runs < 50 && lone.settled() === undefined; runs += 1) {
      start([itemOf((serial += 10))]);
      start([itemOf((serial += 10))]);
      await pool.pending[0]?.succeed();
    }
    expect(runs).toBeLessThanOrEqual(4);
  });
});

describe('a batch whose executor died before its turn', () => {
  it('is queued again without blame: its items may run together, and run as often as others', async () => {
    const { start, pool, scheduler, told } = createRig({ maxBatchItems: 2 });
    const call = start(range(5));
    expect(pool.given.map(idsIn)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    await pool.pending[0]?.fail('executorGone');
    expect(told.lostRuns).toMatchObject([
      { kind: 'executorGone', items: 2 },
      { kind: 'notStarted', items: 2 },
    ]);
    expect(scheduler.gauges).toMatchObject({ queuedItems: 5, runningItems: 0, runningMs: 0 });
    await pool.revive();
    while (pool.pending[0] !== undefined) await pool.pending[0].succeed();
    expect(firstValues(call)).toEqual([0, 1, 2, 3, 4]);
    const again = pool.batches.slice(1).map((batch) => idsIn({ batch }));
    expect(again).toContainEqual([2, 3]);
    expect(again).toContainEqual([0]);
    expect(again).toContainEqual([1]);
  });

  it(`is told so after ${maxLostStarts} times`, async () => {
    const { start, pool, scheduler } = createRig({ maxBatchItems: 1 });
    let before = start([itemOf(100)]);
    const unlucky = start([itemOf(1), itemOf(2)], bulk);
    for (let lost = 1; lost <= maxLostStarts; lost += 1) {
      expect(unlucky.settled()).toBeUndefined();
      expect(pool.given.slice(-2).map(idsIn)).toContainEqual([1]);
      expect(pool.pending.map(idsIn)).toEqual([[99 + lost]]);
      await pool.pending[0]?.fail('executorGone');
      before.abort();
      before = start([itemOf(100 + lost)]);
      await pool.revive();
    }
    expect(errorOf(unlucky)).toMatchObject({ errorName: 'unavailable', data: { field: 'inputs[0]' } });
    expect(errorOf(unlucky).message).toContain('before the turn');
    while (pool.pending[0] !== undefined) await pool.pending[0].succeed();
    expect(scheduler.gauges).toEqual(idle);
  });

  it('and that no executor will replace is told so', async () => {
    const { start, pool, scheduler } = createRig({ maxBatchItems: 1 });
    const call = start(range(3));
    const failed = pool.pending[0]?.fail('executorGone');
    // The pool knows before the failed runs are heard of.
    pool.giveUp();
    await failed;
    expect(errorOf(call).errorName).toBe('unavailable');
    expect(scheduler.gauges).toEqual(idle);
  });
});
