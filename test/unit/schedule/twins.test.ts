import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Head, RunBatch, RunRow } from '../../../src/executor/protocol.ts';
import { fingerprint, maxSharedHeads } from '../../../src/schedule/twins.ts';
import { itemOf, rowOf } from './fake-pool.ts';
import { createRig, idle, type Rig } from './rig.ts';

const keyOf = (head: Head, modelId = 'a') => ({ key: { modelId, head, queryRows: null } });

/** Holds the one executor with a text of another model; all that is started in one turn arrives together. */
function busyRig(): Rig {
  const rig = createRig({ soon: setImmediate });
  rig.start([itemOf(99)], keyOf('dense', 'other'));
  return rig;
}

/** Rows that say for which head they are. */
const answer = (batch: RunBatch): RunRow[] =>
  batch.items.map((item) => {
    const shared = item.sharedHeads?.map(({ head }) => ({ values: Float32Array.of(head.length), indices: null }));
    return { values: Float32Array.of(batch.head.length), indices: null, ...(shared === undefined ? {} : { shared }) };
  });

async function finishAll({ pool }: Rig): Promise<void> {
  await pool.settle();
  while (pool.pending[0] !== undefined) await pool.pending[0].succeed(answer(pool.pending[0].batch));
}

const valueOf = (settled: PromiseSettledResult<{ rows: readonly RunRow[] }> | undefined) =>
  settled?.status === 'fulfilled' ? settled.value.rows.map(({ values }) => values[0]) : settled;

describe('waiting items of one text and other heads', () => {
  it('are answered by one run', async () => {
    const rig = busyRig();
    const dense = rig.start([itemOf(1, 3), itemOf(2, 3)], keyOf('dense'));
    const sparse = rig.start([itemOf(2, 3)], keyOf('sparse'));
    const rows = rig.start([itemOf(2, 3)], keyOf('rows'));
    await finishAll(rig);
    expect(rig.pool.batches).toHaveLength(2);
    expect([dense, sparse, rows].map((call) => valueOf(call.settled()))).toEqual([
      ['dense'.length, 'dense'.length],
      ['sparse'.length],
      ['rows'.length],
    ]);
  });

  it('are answered by one run though a device is idle, where they arrive together', async () => {
    const due: (() => void)[] = [];
    const rig = createRig({ executors: 3, soon: (callback) => due.push(callback) });
    const calls = (['dense', 'sparse', 'rows'] as const).map((head) => rig.start([itemOf(2)], keyOf(head)));
    expect(rig.pool.batches).toHaveLength(0);
    for (const callback of due) callback();
    await finishAll(rig);
    expect(rig.pool.batches).toHaveLength(1);
    expect(calls.map((call) => valueOf(call.settled()))).toEqual([
      ['dense'.length],
      ['sparse'.length],
      ['rows'.length],
    ]);
    expect(due).toHaveLength(1);
  });

  it('share the time of their run', async () => {
    const rig = busyRig();
    const calls = [rig.start([itemOf(2)], keyOf('dense')), rig.start([itemOf(2)], keyOf('rows'))];
    await rig.pool.settle();
    await rig.pool.pending[0]?.succeed();
    await rig.pool.pending[0]?.succeed(answer(rig.pool.pending[0].batch), 8);
    const times = calls
      .map((call) => call.settled())
      .map((end) => (end?.status === 'fulfilled' ? end.value.computeMs : end));
    expect(times).toEqual([4, 4]);
  });

  it.each([
    ['another model', [itemOf(2)], keyOf('rows', 'b')],
    ['another text', [itemOf(3)], keyOf('rows')],
    ['a text that is longer', [itemOf(2, 2)], keyOf('rows')],
    ['another prompt', [{ ...itemOf(2), promptTokens: 1 }], keyOf('rows')],
    [
      'the rows of one query',
      [itemOf(2)],
      { key: { modelId: 'a', head: 'maxSim', queryRows: { values: new Float32Array(1), dimension: 1 } } },
    ],
  ] as const)('never share the run of %s', async (_, items, job) => {
    const rig = busyRig();
    rig.start([itemOf(2)], keyOf('dense'));
    rig.start(items, job);
    await finishAll(rig);
    expect(rig.pool.batches).toHaveLength(3);
  });

  it('are no more than the bound for one text', async () => {
    const rig = busyRig();
    const lead = rig.start([itemOf(2)], keyOf('dense'));
    const others = Array.from({ length: maxSharedHeads + 2 }, () => rig.start([itemOf(2)], keyOf('rows')));
    await finishAll(rig);
    expect(rig.pool.batches.flatMap(({ items }) => items.map((item) => item.sharedHeads?.length ?? 0))).toEqual([
      0,
      maxSharedHeads,
      0,
    ]);
    expect([lead, ...others].every((call) => call.settled()?.status === 'fulfilled')).toBe(true);
  });

  it('run alone once a run that they shared has failed, and the call that left is not answered', async () => {
    const rig = busyRig();
    const dense = rig.start([itemOf(2)], keyOf('dense'));
    const rows = rig.start([itemOf(2)], keyOf('rows'));
    const left = rig.start([itemOf(2)], keyOf('sparse'));
    await rig.pool.settle();
    await rig.pool.pending[0]?.succeed();
    left.abort();
    await rig.pool.pending[0]?.fail('runFailed');
    await finishAll(rig);
    expect(rig.pool.batches.slice(2).map(({ head, items }) => [head, items[0]?.sharedHeads])).toEqual([
      ['rows', undefined],
      ['dense', undefined],
    ]);
    expect([dense, rows, left].map((call) => call.settled()?.status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(rig.scheduler.gauges).toEqual(idle);
  });
});

describe('a fingerprint', () => {
  it('is the same for equal texts', () => {
    fc.assert(
      fc.property(fc.array(fc.nat()), (ids) => fingerprint(Int32Array.from(ids)) === fingerprint(Int32Array.from(ids))),
    );
  });
});

describe('with any mix of heads, texts and calls', () => {
  it('every item is answered once, with its own row', async () => {
    const anyCall = fc.record({
      head: fc.constantFrom<Head>('dense', 'sparse', 'rows'),
      ids: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(anyCall, { maxLength: 8 }), async (calls) => {
        const rig = busyRig();
        const started = calls.map(({ head, ids }) =>
          rig.start(
            ids.map((id) => itemOf(id)),
            keyOf(head),
          ),
        );
        await rig.pool.settle();
        while (rig.pool.pending[0] !== undefined) {
          const { batch } = rig.pool.pending[0];
          const rowFor = (item: (typeof batch.items)[number], head: Head) => ({
            ...rowOf(item),
            values: Float32Array.of(item.ids[0] ?? 0, head.length),
          });
          const rows = batch.items.map((item) => ({
            ...rowFor(item, batch.head),
            shared: (item.sharedHeads ?? []).map(({ head }) => rowFor(item, head)),
          }));
          await rig.pool.pending[0].succeed(rows);
        }
        for (const [at, { head, ids }] of calls.entries()) {
          const settled = started[at]?.settled();
          const got = settled?.status === 'fulfilled' ? settled.value.rows.map(({ values }) => [...values]) : settled;
          expect(got).toEqual(ids.map((id) => [id, head.length]));
        }
      }),
    );
  });
});
