import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Head, RunItem } from '../../../src/executor/protocol.ts';
import type { Job } from '../../../src/schedule/call.ts';
import { maxLostRuns } from '../../../src/schedule/loop.ts';
import { itemOf } from './fake-pool.ts';
import { createRig, errorOf, firstValues, idle, type StartedCall } from './rig.ts';

const computeMsOf = (call: StartedCall): number => {
  const settled = call.settled();
  return settled?.status === 'fulfilled' ? settled.value.computeMs : Number.NaN;
};
const idsOf = (items: readonly RunItem[]) => items.map(({ ids }) => ids[0]);
const keyOf = (head: Head, queryRows: Job['key']['queryRows'] = null) => ({ key: { modelId: 'm', head, queryRows } });

const isSameItem = ({ ids, typeIds, keptRows, promptTokens, attendedTokens }: RunItem, other: RunItem) =>
  ids === other.ids &&
  typeIds === other.typeIds &&
  keptRows === other.keptRows &&
  promptTokens === other.promptTokens &&
  attendedTokens === other.attendedTokens;

describe('the same text twice', () => {
  it('in one call is run once, and each has the row and its share of the time', async () => {
    const { start, pool, told } = createRig();
    const call = start([itemOf(1, 2), itemOf(2, 4), itemOf(1, 2)]);
    await pool.pending[0]?.succeed(undefined, 12);
    expect(pool.batches.map(({ items }) => idsOf(items))).toEqual([[2, 1]]);
    expect(firstValues(call)).toEqual([1, 2, 1]);
    expect(computeMsOf(call)).toBeCloseTo(12, 9);
    expect(told.runs).toMatchObject([{ items: 3, tokens: 6, paddedTokens: 6, expectedMs: 6 }]);
  });

  it('in two calls that arrive together is run once, in whatever lane', async () => {
    const { start, pool, scheduler } = createRig({ soon: setImmediate });
    const calls = [start([itemOf(1, 4)]), start([itemOf(1, 4)]), start([itemOf(1, 4)], { lane: 'bulk' })];
    await pool.settle();
    await pool.pending[0]?.succeed(undefined, 9);
    expect(pool.batches).toHaveLength(1);
    expect(calls.map(firstValues)).toEqual([[1], [1], [1]]);
    for (const call of calls) expect(computeMsOf(call)).toBeCloseTo(3, 9);
    expect(scheduler.gauges).toEqual(idle);
  });

  it('whose run is under way is not run again, and whoever joined it has its share of the time', async () => {
    const { start, pool, clock, scheduler } = createRig({ executors: 2 });
    const first = start([itemOf(1, 4)]);
    await clock.advance(7);
    const second = start([itemOf(1, 4), itemOf(2, 4)]);
    expect(scheduler.gauges).toMatchObject({ queuedItems: 0, runningItems: 3 });
    expect(pool.batches.map(({ items }) => idsOf(items))).toEqual([[1], [2]]);
    await pool.pending[0]?.succeed(undefined, 8);
    expect([first.settled()?.status, second.doneCount()]).toEqual(['fulfilled', 1]);
    await pool.pending[0]?.succeed(undefined, 5);
    expect(firstValues(second)).toEqual([1, 2]);
    expect([computeMsOf(first), computeMsOf(second)]).toEqual([4, 4 + 5]);
    expect(second.settled()).toMatchObject({ value: { queueMs: 0, device: 'cpu:0' } });
  });

  it('is run again once its run has ended', async () => {
    const { start, pool } = createRig();
    for (const id of [1, 1]) {
      start([itemOf(id)]);
      await pool.settle();
      await pool.pending[0]?.succeed();
    }
    expect(pool.batches).toHaveLength(2);
  });

  const base = itemOf(1, 4);
  const rows = { values: new Float32Array(1), dimension: 1 };
  it.each([
    ['kept rows', 'rows', { ...base, keptRows: Int32Array.of(0) }, { ...base, keptRows: Int32Array.of(1) }],
    ['kept rows, all or some', 'rows', base, { ...base, keptRows: Int32Array.of(1) }],
    ['segments', 'dense', base, { ...base, typeIds: Uint8Array.of(0, 0, 1, 1) }],
    ['prompts', 'dense', base, { ...base, promptTokens: 2 }],
    ['attended tokens', 'dense', base, { ...base, attendedTokens: 2 }],
  ] as const)('of other %s is never answered by the row of the other', async (what, head, left, right) => {
    const ways = [
      // Together in one batch, together in two, and the second while the first is under way.
      { executors: 1, soon: setImmediate },
      { executors: 2, soon: setImmediate },
      { executors: 2 },
    ];
    for (const way of ways) {
      const { start, pool } = createRig(way);
      const calls = [start([left], keyOf(head)), start([right], keyOf(head))];
      await pool.settle();
      const items = pool.batches.flatMap((batch) => batch.items);
      // Where only the kept rows differ, one pass gives both, as rows of their own.
      const isOnePass = items.length === 1;
      expect(isOnePass).toBe(what.startsWith('kept rows') && way.executors === 2 && way.soon !== undefined);
      if (isOnePass) expect(items[0]?.sharedHeads).toEqual([{ head, keptRows: right.keptRows }]);
      const valueOf = (item: RunItem) => (isSameItem(item, left) ? 10 : 20);
      while (pool.pending[0] !== undefined) {
        const rowsOfRun = pool.pending[0].batch.items.map((item) => ({
          values: Float32Array.of(valueOf(item)),
          indices: null,
          ...(isOnePass ? { shared: [{ values: Float32Array.of(20), indices: null }] } : {}),
        }));
        await pool.pending[0].succeed(rowsOfRun);
      }
      expect(calls.map(firstValues)).toEqual([[10], [20]]);
    }
  });

  it.each([
    ['another model', { key: { modelId: 'n', head: 'dense', queryRows: null } }],
    ['another head, of which no row was asked', keyOf('logit')],
  ] as const)('for %s is not answered by a run that is under way', async (_, job) => {
    const { start, pool } = createRig({ executors: 2 });
    start([itemOf(1)]);
    start([itemOf(1)], job);
    await pool.settle();
    expect(pool.batches).toHaveLength(2);
  });

  it.each([setImmediate, (callback: () => void) => callback()])(
    'compared with different query rows is compared with each',
    async (soon) => {
      const { start, pool } = createRig({ executors: 2, soon });
      const other = { values: new Float32Array(1), dimension: 1 };
      const calls = [start([itemOf(1)], keyOf('maxSim', rows)), start([itemOf(1)], keyOf('maxSim', other))];
      await pool.settle();
      expect(pool.batches.map(({ queryRows }) => queryRows)).toEqual([rows, other]);
      await pool.pending[0]?.succeed([{ values: Float32Array.of(3), indices: null }]);
      await pool.pending[0]?.succeed([{ values: Float32Array.of(4), indices: null }]);
      expect(calls.map(firstValues)).toEqual([[3], [4]]);
    },
  );
});

describe('a run that is shared', () => {
  it('and fails is tried again for each, alone', async () => {
    const { start, pool, scheduler } = createRig();
    const calls = [start([itemOf(1)]), start([itemOf(1)])];
    await pool.pending[0]?.fail('runFailed');
    while (pool.pending[0] !== undefined) await pool.pending[0].succeed();
    expect(calls.map(firstValues)).toEqual([[1], [1]]);
    expect(pool.batches.map(({ items }) => items.length)).toEqual([1, 1, 1]);
    expect(scheduler.gauges).toEqual(idle);
  });

  it('and fails for each alone is told to each', async () => {
    const { start, pool } = createRig();
    const calls = [start([itemOf(1)]), start([itemOf(1)])];
    while (pool.pending[0] !== undefined) await pool.pending[0].fail('runFailed');
    expect(calls.map((call) => errorOf(call).errorName)).toEqual(['internal', 'internal']);
    expect(pool.batches).toHaveLength(3);
  });

  it('and is lost counts as lost for each', async () => {
    const { start, pool, scheduler } = createRig();
    const calls = [start([itemOf(1)]), start([itemOf(1)])];
    for (let lost = 0; lost < 2 * maxLostRuns && pool.pending[0] !== undefined; lost += 1) {
      await pool.pending[0].fail('executorGone');
      await pool.revive();
    }
    expect(calls.map((call) => errorOf(call).errorName)).toEqual(['unavailable', 'unavailable']);
    expect(scheduler.gauges).toEqual(idle);
  });

  it('and gives a value that is not a number fails each, and counts once', async () => {
    const { start, pool, told } = createRig();
    const calls = [start([itemOf(1)]), start([itemOf(1)])];
    await pool.pending[0]?.succeed([{ values: Float32Array.of(Number.NaN), indices: null }]);
    expect(calls.map((call) => errorOf(call).errorName)).toEqual(['internal', 'internal']);
    expect(told.badResults).toHaveLength(1);
  });

  it('goes on for whoever is left when another is cancelled, in whatever order they came', async () => {
    for (const leaver of [0, 1]) {
      const { start, pool, scheduler } = createRig();
      const calls = [start([itemOf(1)]), start([itemOf(1)])] as const;
      calls[leaver]?.abort();
      await pool.settle();
      expect(pool.given[0]?.skips).toEqual([]);
      await pool.pending[0]?.succeed();
      expect(calls.map((call) => call.settled()?.status)).toEqual(
        leaver === 0 ? ['rejected', 'fulfilled'] : ['fulfilled', 'rejected'],
      );
      expect(scheduler.gauges).toEqual(idle);
    }
  });
});

describe('items that were given and that nobody waits for any more', () => {
  it('are taken back, exactly those', async () => {
    const { start, pool } = createRig({ soon: setImmediate, maxBatchItems: 8 });
    const gone = start([itemOf(1), itemOf(2), itemOf(3)]);
    const other = start([itemOf(4), itemOf(2), itemOf(5)]);
    await pool.settle();
    const [{ batch, skips } = { batch: { items: [] }, skips: [] }] = pool.given;
    expect(idsOf(batch.items)).toEqual([1, 4, 2, 3, 5]);
    gone.abort();
    expect(skips).toEqual([[0, 3]]);
    await pool.pending[0]?.succeed();
    expect(firstValues(other)).toEqual([4, 2, 5]);
  });

  it('are taken back once the last of those who wait has left', async () => {
    const { start, pool } = createRig();
    const calls = [start([itemOf(1)]), start([itemOf(1)]), start([itemOf(1)])];
    calls[1]?.abort();
    calls[0]?.abort();
    expect(pool.given[0]?.skips).toEqual([]);
    calls[2]?.abort();
    expect(pool.given[0]?.skips).toEqual([[0]]);
    await pool.settle();
    await pool.pending[0]?.succeed();
  });

  it('never run where they had not begun, and are counted nowhere', async () => {
    const { start, pool, told, scheduler } = createRig({ maxBatchItems: 2 });
    start([itemOf(0)]);
    const gone = start([itemOf(1), itemOf(2)]);
    expect(pool.given).toHaveLength(2);
    gone.abort();
    await pool.pending[0]?.succeed();
    await pool.settle();
    expect(pool.batches.map(({ items }) => idsOf(items))).toEqual([[0]]);
    expect(told.runs).toHaveLength(1);
    expect(pool.goodResults).toHaveLength(1);
    expect(pool.badResults).toEqual([]);
    expect(scheduler.gauges).toEqual(idle);
  });

  it('are run again for a call that comes later, for which no row will come from that run', async () => {
    const { start, pool } = createRig();
    const gone = start([itemOf(1)]);
    gone.abort();
    const later = start([itemOf(1)]);
    await pool.settle();
    await pool.pending[0]?.succeed();
    await pool.settle();
    expect(later.settled()).toBeUndefined();
    await pool.pending[0]?.succeed();
    expect(firstValues(later)).toEqual([1]);
    expect(pool.batches).toHaveLength(2);
  });

  it('are taken back also where their call failed by another of its items', async () => {
    const { start, pool } = createRig({ executors: 2, maxBatchItems: 1 });
    const call = start([itemOf(1), itemOf(2)]);
    await pool.pending[0]?.fail('runFailed');
    expect(errorOf(call).data.field).toBe('inputs[0]');
    expect(pool.given[1]?.skips).toEqual([[0]]);
    await pool.pending[0]?.succeed();
    expect(call.doneCount()).toBe(0);
  });
});

describe('with any texts, few of them different', () => {
  it('each is run once while it is wanted, every item has its row, and the shares add up to the time', async () => {
    const anyCalls = fc.array(fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 }), {
      minLength: 1,
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(anyCalls, fc.integer({ min: 1, max: 3 }), async (wanted, executors) => {
        const { start, pool, scheduler } = createRig({ executors, maxBatchItems: 3 });
        const calls = wanted.map((ids) => start(ids.map((id) => itemOf(id, id))));
        let totalMs = 0;
        while (pool.pending[0] !== undefined) {
          const running = pool.pending.flatMap(({ batch }) => idsOf(batch.items));
          expect(new Set(running).size).toBe(running.length);
          totalMs += 7;
          await pool.pending[0].succeed(undefined, 7);
        }
        expect(calls.map(firstValues)).toEqual(wanted);
        expect(calls.reduce((sum, call) => sum + computeMsOf(call), 0)).toBeCloseTo(totalMs, 6);
        expect(pool.batches.flatMap(({ items }) => items)).toHaveLength(new Set(wanted.flat()).size);
        expect(scheduler.gauges).toEqual(idle);
      }),
    );
  });
});
