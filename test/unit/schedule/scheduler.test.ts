import { describe, expect, it } from 'vitest';
import { maxLostRuns } from '../../../src/schedule/loop.ts';
import { itemOf, rowOf, type PendingRun } from './fake-pool.ts';
import { cancelledReason, createRig, errorOf, firstValues, idle } from './rig.ts';

const poison = 666;
const isPoisoned = ({ batch }: PendingRun) => batch.items.some(({ ids }) => ids[0] === poison);
const range = (count: number, from = 0) => Array.from({ length: count }, (_, at) => itemOf(from + at));
const idsIn = ({ batch }: PendingRun) => batch.items.map(({ ids }) => ids[0]);

describe('a call', () => {
  it('gets its rows in input order, whichever batch ends first', async () => {
    const { start, pool } = createRig({ executors: 3, maxBatchItems: 2 });
    const call = start(range(6));
    await pool.settle();
    expect(pool.pending).toHaveLength(3);
    for (let run = pool.pending.at(-1); run !== undefined; run = pool.pending.at(-1)) await run.succeed();
    expect(firstValues(call)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(call.doneCount()).toBe(6);
  });

  it('has its longest texts run first where each runs for itself, so that short ones fill up the end', async () => {
    const { start, pool } = createRig({ executors: 2, maxBatchItems: 8 });
    const call = start([itemOf(1, 1), itemOf(2, 2), itemOf(4, 4), itemOf(7, 7), itemOf(3, 2)]);
    await pool.settle();
    for (let run = pool.pending[0]; run !== undefined; run = pool.pending[0]) await run.succeed();
    const given = pool.given.map(({ batch }) => batch.items.map(({ ids }) => ids[0]));
    expect(given[0]).toEqual([7]);
    expect(given.flat()).toEqual([7, 4, 2, 3, 1]);
    expect(firstValues(call)).toEqual([1, 2, 4, 7, 3]);
  });

  it('without items needs no device', async () => {
    const { start, pool } = createRig();
    const call = start([]);
    await pool.settle();
    expect(call.settled()).toEqual({
      status: 'fulfilled',
      value: { rows: [], queueMs: 0, computeMs: 0, device: null },
    });
    expect(pool.batches).toHaveLength(0);
  });

  it('learns how long it waited, its share of the time and the device', async () => {
    const { start, pool, clock } = createRig({ maxBatchItems: 2 });
    const first = start([itemOf(1, 3)]);
    await clock.advance(5);
    const second = start([itemOf(2, 1), itemOf(3, 3)]);
    await clock.advance(20);
    await pool.pending[0]?.succeed(undefined, 9);
    await pool.pending[0]?.succeed(undefined, 8);
    expect(first.settled()).toMatchObject({ value: { queueMs: 0, computeMs: 9, device: 'cpu:0' } });
    expect(second.settled()).toMatchObject({ value: { queueMs: 20, computeMs: 8 } });
  });

  it('shares the time of a batch with others by tokens', async () => {
    const { start, pool } = createRig();
    const blocker = start([itemOf(0)]);
    const small = start([itemOf(1, 1)]);
    const large = start([itemOf(2, 3)]);
    await pool.settle();
    await pool.pending[0]?.succeed();
    await pool.pending[0]?.succeed(undefined, 8);
    expect(blocker.settled()?.status).toBe('fulfilled');
    expect(small.settled()).toMatchObject({ value: { computeMs: 2 } });
    expect(large.settled()).toMatchObject({ value: { computeMs: 6 } });
  });

  it('whose text has no token still reports a time that is a number', async () => {
    const { start, pool } = createRig();
    const call = start([itemOf(1, 0)]);
    await pool.pending[0]?.succeed([{ values: Float32Array.of(1), indices: null }], 8);
    expect(call.settled()).toMatchObject({ value: { computeMs: 0 } });
  });

  it('that is aborted before it runs never reaches a device', async () => {
    const { start, pool, scheduler } = createRig();
    const signal = AbortSignal.abort(cancelledReason);
    const call = start([itemOf(1)], { signal });
    await pool.settle();
    expect(errorOf(call)).toBe(cancelledReason);
    expect(pool.batches).toHaveLength(0);
    expect(scheduler.gauges).toEqual(idle);
  });
});

describe('cancelling', () => {
  it('a queued call keeps its items from every device and leaves the others alone', async () => {
    const { start, pool, scheduler } = createRig();
    start([itemOf(0)]);
    const gone = start(range(3, 10));
    const other = start(range(2, 20));
    await pool.settle();
    gone.abort();
    await pool.settle();
    expect(errorOf(gone)).toBe(cancelledReason);
    await pool.pending[0]?.succeed();
    expect(pool.pending.map(idsIn)).toEqual([[20, 21]]);
    await pool.pending[0]?.succeed();
    expect(firstValues(other)).toEqual([20, 21]);
    expect(scheduler.gauges).toEqual(idle);
  });

  it('a running call detaches it: the batch ends, and its companions get their own rows', async () => {
    const { start, pool, scheduler } = createRig({ soon: setImmediate });
    const gone = start([itemOf(1), itemOf(2)]);
    const other = start([itemOf(3), itemOf(4)]);
    await pool.settle();
    expect(pool.pending.map(idsIn)).toEqual([[1, 3, 2, 4]]);
    gone.abort();
    await pool.settle();
    expect(errorOf(gone)).toBe(cancelledReason);
    expect(scheduler.gauges).toEqual({ ...idle, runningItems: 2, runningMs: 2 });
    await pool.pending[0]?.succeed();
    expect(firstValues(other)).toEqual([3, 4]);
    expect(gone.doneCount()).toBe(0);
    expect(scheduler.gauges).toEqual(idle);
    const next = start([itemOf(5)]);
    await pool.settle();
    await pool.settle();
    await pool.pending[0]?.succeed();
    expect(firstValues(next)).toEqual([5]);
  });

  it('a call whose run is lost afterwards does not run it again', async () => {
    const { start, pool, scheduler } = createRig();
    const gone = start(range(2));
    await pool.settle();
    gone.abort();
    await pool.pending[0]?.fail('executorGone');
    await pool.revive();
    expect(pool.batches).toHaveLength(1);
    expect(scheduler.gauges).toEqual(idle);
  });

  it('a call that has settled changes nothing', async () => {
    const { start, pool } = createRig();
    const call = start([itemOf(7)]);
    await pool.settle();
    await pool.pending[0]?.succeed();
    call.abort();
    await pool.settle();
    expect(firstValues(call)).toEqual([7]);
  });
});

describe('a run that fails', () => {
  it('costs only the culprit: ten parallel calls, one poisoned, nine results', async () => {
    const { start, pool, scheduler } = createRig({ maxBatchItems: 10, soon: setImmediate });
    const calls = Array.from({ length: 10 }, (_, at) => start([itemOf(at === 4 ? poison : at)]));
    await pool.settle();
    expect(pool.pending[0]?.batch.items).toHaveLength(10);
    while (pool.pending[0] !== undefined) {
      const [run] = pool.pending;
      await (isPoisoned(run) ? run.fail('runFailed') : run.succeed());
    }
    expect(calls.map((call) => call.settled()?.status)).toEqual(
      calls.map((_, at) => (at === 4 ? 'rejected' : 'fulfilled')),
    );
    expect(calls.flatMap((call, at) => (at === 4 ? [] : firstValues(call)))).toEqual([0, 1, 2, 3, 5, 6, 7, 8, 9]);
    expect(errorOf(calls[4] as never)).toMatchObject({ errorName: 'internal', data: { field: 'inputs[0]' } });
    expect(scheduler.gauges).toEqual(idle);
  });

  it('is tried once more per item, alone, and never a second time for the culprit', async () => {
    const { start, pool } = createRig({ maxBatchItems: 3 });
    start([itemOf(1), itemOf(poison), itemOf(2)]);
    while (pool.pending[0] !== undefined) {
      const [run] = pool.pending;
      await (isPoisoned(run) ? run.fail('runFailed') : run.succeed());
    }
    const poisonedRuns = pool.batches.filter(({ items }) => items.some(({ ids }) => ids[0] === poison));
    expect(poisonedRuns.map(({ items }) => items.length)).toEqual([3, 1]);
  });

  it('takes the rest of its call out of the queue, but for a batch that had started', async () => {
    const { start, pool, scheduler } = createRig({ maxBatchItems: 1 });
    const call = start([itemOf(poison), ...range(5)]);
    await pool.settle();
    await pool.pending[0]?.fail('runFailed');
    expect(errorOf(call).data.field).toBe('inputs[0]');
    expect(scheduler.gauges).toEqual(idle);
    while (pool.pending[0] !== undefined) await pool.pending[0].succeed();
    expect(pool.batches.length).toBeLessThanOrEqual(2);
    expect(scheduler.gauges).toEqual(idle);
  });

  it('because of a bug of ours settles every item all the same', async () => {
    const { start, pool, told, scheduler } = createRig();
    const call = start([itemOf(1)]);
    await pool.pending[0]?.crash(new TypeError('a bug'));
    expect(errorOf(call).errorName).toBe('internal');
    expect(told.lostRuns).toMatchObject([{ kind: 'runFailed', reason: 'TypeError: a bug', items: 1 }]);
    expect(scheduler.gauges).toEqual(idle);
  });
});

describe('a batch that the memory of a device does not suffice for', () => {
  /** What fits: two items of ordinary texts, never the one that is too large. */
  const fits = (run: { batch: { items: readonly { ids: Int32Array }[] } } | undefined) =>
    run !== undefined && run.batch.items.length <= 2 && !run.batch.items.some(({ ids }) => ids[0] === poison);

  it('is run again in parts, and only an input that does not fit alone fails', async () => {
    const { start, pool, scheduler } = createRig({ maxBatchItems: 8, soon: setImmediate });
    const good = start(range(5));
    const large = start([itemOf(poison)]);
    await pool.settle();
    expect(pool.pending[0]?.batch.items).toHaveLength(6);
    while (pool.pending[0] !== undefined) {
      const [run] = pool.pending;
      await (fits(run) ? run.succeed() : run.fail('outOfMemory'));
      await pool.revive();
    }
    expect(firstValues(good)).toEqual([0, 1, 2, 3, 4]);
    expect(errorOf(large)).toMatchObject({ errorName: 'unavailable', data: { field: 'inputs[0]' } });
    expect(errorOf(large).message).toContain('memory');
    expect(scheduler.gauges).toEqual(idle);
  });
});

describe('an executor that is lost', () => {
  it.each(['executorGone', 'timedOut'] as const)('(%s) has each of its items tried once more, alone', async (kind) => {
    const { start, pool, told } = createRig();
    const call = start(range(3));
    await pool.settle();
    await pool.pending[0]?.fail(kind);
    expect(call.settled()).toBeUndefined();
    await pool.revive();
    while (pool.pending[0] !== undefined) await pool.pending[0].succeed();
    expect(firstValues(call)).toEqual([0, 1, 2]);
    expect(pool.batches.map(({ items }) => items.length)).toEqual([3, 1, 1, 1]);
    expect(told.lostRuns).toMatchObject([{ kind, items: 3 }]);
  });

  it(`is blamed on nobody: after ${maxLostRuns} lost runs the call is told that no device could serve it`, async () => {
    const { start, pool, scheduler } = createRig();
    const call = start([itemOf(1), itemOf(2)]);
    await pool.settle();
    for (let lost = 0; lost < maxLostRuns; lost += 1) {
      await pool.pending[0]?.fail('executorGone');
      await pool.revive();
    }
    expect(errorOf(call)).toMatchObject({ errorName: 'unavailable', data: { field: 'inputs[0]' } });
    expect(pool.batches).toHaveLength(maxLostRuns);
    expect(scheduler.gauges).toEqual(idle);
  });

  it('leaves what waits to the next executor', async () => {
    const { start, pool } = createRig({ maxBatchItems: 1 });
    start([itemOf(1)]);
    const waiting = start([itemOf(2)]);
    await pool.settle();
    await pool.pending[0]?.fail('executorGone');
    expect(waiting.settled()).toBeUndefined();
    await pool.revive();
    while (pool.pending[0] !== undefined) await pool.pending[0].succeed();
    expect(firstValues(waiting)).toEqual([2]);
  });
});

describe('devices that will never come back', () => {
  it('settle everything that waits, with the reason', async () => {
    const { start, pool, scheduler } = createRig({ maxBatchItems: 1 });
    const running = start([itemOf(1)]);
    const waiting = [start([itemOf(2)]), start([itemOf(3)], { lane: 'bulk' })];
    await pool.settle();
    await pool.pending[0]?.fail('executorGone');
    pool.giveUp();
    await pool.settle();
    for (const call of [running, ...waiting]) {
      expect(errorOf(call)).toMatchObject({ errorName: 'unavailable', data: { detail: 'Executor cpu:0/0 is down.' } });
    }
    expect(scheduler.gauges).toEqual(idle);
  });

  it('admit no further call, except one without items', () => {
    const { scheduler, pool } = createRig();
    pool.giveUp();
    expect(() => scheduler.admit('m', { items: 1, tokens: 1 }, 1000)).toThrow(
      expect.objectContaining({ errorName: 'unavailable' }),
    );
    expect(() => scheduler.admit('m', { items: 0, tokens: 0 }, 1000)).not.toThrow();
  });
});

describe('a value that is not a number', () => {
  it.each([Number.NaN, Infinity, -Infinity])('(%d) fails the call that owns the input and no other', async (value) => {
    const { start, pool, told, scheduler } = createRig({ soon: setImmediate });
    const bad = start([itemOf(1), itemOf(2)]);
    const good = start([itemOf(3)]);
    await pool.settle();
    expect(pool.pending[0]?.batch.items).toHaveLength(3);
    const rows = pool.pending[0]?.batch.items.map((item) =>
      item.ids[0] === 2 ? { values: Float32Array.of(0, value), indices: null } : rowOf(item),
    );
    await pool.pending[0]?.succeed(rows);
    expect(errorOf(bad)).toMatchObject({ errorName: 'internal', data: { field: 'inputs[1]' } });
    expect(firstValues(good)).toEqual([3]);
    expect(told.badResults).toEqual([expect.objectContaining({ executorId: 'cpu:0/0', modelId: 'm', head: 'dense' })]);
    expect(scheduler.gauges).toEqual(idle);
  });

  it.each([0, 1, 2, 3])('in the score of passage %d of 4 names that passage', async (at) => {
    const { start, pool } = createRig();
    const call = start(range(4), {
      key: { modelId: 'm', head: 'logit', queryRows: null },
      fieldOf: (index) => `passages[${index}]`,
    });
    await pool.settle();
    await pool.pending[0]?.succeed(
      Array.from({ length: 4 }, (_, row) => ({ values: Float32Array.of(row === at ? Number.NaN : 1), indices: null })),
    );
    expect(errorOf(call)).toMatchObject({ errorName: 'internal', data: { field: `passages[${at}]` } });
  });

  it('counts once per run against its executor, and a good run counts for it', async () => {
    const { start, pool, told } = createRig();
    start(range(3));
    await pool.settle();
    await pool.pending[0]?.succeed(range(3).map(() => ({ values: Float32Array.of(Number.NaN), indices: null })));
    expect(pool.badResults).toEqual(['cpu:0/0']);
    expect(pool.goodResults).toEqual([]);
    expect(told.badResults).toHaveLength(1);
    start([itemOf(1)]);
    await pool.settle();
    await pool.pending[0]?.succeed();
    expect(pool.goodResults).toEqual(['cpu:0/0']);
  });

  it('counts a missing row as one', async () => {
    const { start, pool } = createRig();
    const call = start(range(2));
    await pool.settle();
    await pool.pending[0]?.succeed([rowOf(itemOf(0))]);
    expect(errorOf(call).data.field).toBe('inputs[1]');
  });
});
