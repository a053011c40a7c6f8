import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  maxInteractiveInARow,
  pickBatch,
  pickTurn,
  type CallQueue,
  type QueueView,
} from '../../../src/schedule/batcher.ts';
import type { BatchLimits } from '../../../src/device/budget.ts';
import type { Item, Lane, RunKey } from '../../../src/schedule/item.ts';
import { WaitingQueue, type WaitingCall } from '../../../src/schedule/queue.ts';

const keys: readonly RunKey[] = [
  { modelId: 'a', head: 'dense', queryRows: null },
  { modelId: 'a', head: 'rows', queryRows: null },
  { modelId: 'b', head: 'dense', queryRows: null },
  { modelId: 'a', head: 'maxSim', queryRows: { values: new Float32Array(2), dimension: 2 } },
  { modelId: 'a', head: 'maxSim', queryRows: { values: new Float32Array(2), dimension: 2 } },
];
const plainKey: RunKey = { modelId: 'a', head: 'dense', queryRows: null };

interface TestCall extends WaitingCall {
  readonly name: string;
}

function callOf(name: string, key: RunKey, items: readonly { tokens: number; mustRunAlone?: boolean }[]): TestCall {
  const waiting = items.map(({ tokens, mustRunAlone = false }, index): Item => ({
    key,
    run: { ids: new Int32Array(tokens), typeIds: null, keptRows: null },
    tokens,
    index,
    fingerprint: 0,
    queuedAtMs: 0,
    state: 'queued',
    lostRuns: 0,
    mustRunAlone,
  }));
  return { name, key, waiting };
}

const anyModel = () => true;
const laneOf = (view: QueueView) => pickTurn(view, anyModel)?.lane ?? null;

/** The batch of whoever's turn it is, where every model can run. */
function pick(view: QueueView, limits: BatchLimits, active: number) {
  const turn = pickTurn(view, anyModel);
  return turn === null ? null : pickBatch(view, turn, limits, active);
}

const alike = (count: number, tokens = 1) => Array.from({ length: count }, () => ({ tokens }));

const anyCalls = fc
  .array(
    fc.record({
      key: fc.constantFrom(...keys),
      items: fc.array(fc.record({ tokens: fc.integer({ min: 1, max: 40 }), mustRunAlone: fc.boolean() }), {
        minLength: 1,
        maxLength: 12,
      }),
    }),
    { maxLength: 6 },
  )
  .map((calls) => calls.map(({ key, items }, at) => callOf(String(at), key, items)));
const anyView = fc.record({
  lanes: fc.record({ interactive: anyCalls, bulk: anyCalls }),
  interactiveInARow: fc.nat({ max: 8 }),
});
const anyLimits = fc.record({
  maxBatchTokens: fc.integer({ min: 1, max: 100 }),
  maxBatchItems: fc.integer({ min: 1, max: 16 }),
});
const executors = fc.integer({ min: 0, max: 8 });

const itemsOf = (take: ReadonlyMap<CallQueue, number>) =>
  [...take].flatMap(([call, count]) => call.waiting.slice(0, count));

describe('the lane whose turn it is', () => {
  it.each([
    { interactive: 0, bulk: 0, inARow: 0, lane: null },
    { interactive: 1, bulk: 0, inARow: 99, lane: 'interactive' },
    { interactive: 0, bulk: 1, inARow: 0, lane: 'bulk' },
    { interactive: 1, bulk: 1, inARow: 0, lane: 'interactive' },
    { interactive: 1, bulk: 1, inARow: maxInteractiveInARow - 1, lane: 'interactive' },
    { interactive: 1, bulk: 1, inARow: maxInteractiveInARow, lane: 'bulk' },
  ])('is $lane with $interactive interactive and $bulk bulk calls after $inARow batches', (row) => {
    const lane = (count: number) => Array.from({ length: count }, () => callOf('x', plainKey, alike(1)));
    const lanes = { interactive: lane(row.interactive), bulk: lane(row.bulk) };
    expect(laneOf({ lanes, interactiveInARow: row.inARow })).toBe(row.lane);
  });
});

describe('the call whose turn it is', () => {
  it('is the first of those whose model can run now', () => {
    fc.assert(
      fc.property(anyView, fc.constantFrom('a', 'b', 'none'), (view, idle) => {
        const turn = pickTurn(view, (modelId) => modelId === idle);
        const runnable = [...view.lanes.interactive, ...view.lanes.bulk].filter(({ key }) => key.modelId === idle);
        expect(turn === null).toBe(runnable.length === 0);
        if (turn === null) return;
        expect(turn.lead).toBe(view.lanes[turn.lane].find(({ key }) => key.modelId === idle));
      }),
    );
  });
});

describe('a picked batch', () => {
  it('is there exactly when something waits, and takes the oldest item of the call whose turn it is', () => {
    fc.assert(
      fc.property(anyView, anyLimits, executors, (view, limits, active) => {
        const picked = pick(view, limits, active);
        const lane = laneOf(view);
        expect(picked?.lane ?? null).toBe(lane);
        if (picked === null || lane === null) return;
        const lead = view.lanes[lane][0];
        expect(lead !== undefined && (picked.take.get(lead) ?? 0) >= 1).toBe(true);
      }),
    );
  });

  it('never exceeds the limits, except for one item that alone is too large', () => {
    fc.assert(
      fc.property(anyView, anyLimits, executors, (view, limits, active) => {
        const picked = pick(view, limits, active);
        if (picked === null) return;
        const items = itemsOf(picked.take);
        expect(items.length).toBeLessThanOrEqual(limits.maxBatchItems);
        const tokens = items.reduce((sum, item) => sum + item.tokens, 0);
        if (items.length > 1) expect(tokens).toBeLessThanOrEqual(limits.maxBatchTokens);
      }),
    );
  });

  it('joins only items of one model, one head and one query', () => {
    fc.assert(
      fc.property(anyView, anyLimits, executors, (view, limits, active) => {
        const picked = pick(view, limits, active);
        const [first, ...rest] = picked === null ? [] : [...picked.take.keys()].map(({ key }) => key);
        for (const key of rest) {
          expect(key).toEqual(first);
          expect(key.queryRows).toBe(first?.queryRows);
        }
      }),
    );
  });

  it('takes only items that wait, each at most once, and alone those that must run alone', () => {
    fc.assert(
      fc.property(anyView, anyLimits, executors, (view, limits, active) => {
        const picked = pick(view, limits, active);
        if (picked === null) return;
        for (const [call, count] of picked.take) {
          expect(view.lanes[picked.lane]).toContain(call);
          expect(count).toBeGreaterThanOrEqual(1);
          expect(count).toBeLessThanOrEqual(call.waiting.length);
        }
        const items = itemsOf(picked.take);
        expect(new Set(items).size).toBe(items.length);
        if (items.some((item) => item.mustRunAlone)) expect(items).toHaveLength(1);
      }),
    );
  });

  it('is spread over all executors', () => {
    const lanes = { interactive: [], bulk: [callOf('x', plainKey, alike(16))] };
    const limits = { maxBatchItems: 16, maxBatchTokens: 1000 };
    const picked = pick({ lanes, interactiveInARow: 0 }, limits, 4);
    expect([...(picked?.take.values() ?? [])]).toEqual([4]);
  });

  it('fills up with whatever still fits, in turns', () => {
    const long = callOf('long', plainKey, [{ tokens: 5 }, { tokens: 50 }]);
    const short = callOf('short', plainKey, alike(3));
    const lanes = { interactive: [long, short], bulk: [] };
    const picked = pick({ lanes, interactiveInARow: 0 }, { maxBatchItems: 8, maxBatchTokens: 10 }, 1);
    expect(picked?.take.get(long)).toBe(1);
    expect(picked?.take.get(short)).toBe(3);
  });

  it('changes nothing that waits', () => {
    fc.assert(
      fc.property(anyView, anyLimits, executors, (view, limits, active) => {
        const before = JSON.stringify(view);
        pick(view, limits, active);
        expect(JSON.stringify(view)).toBe(before);
      }),
    );
  });
});

/** Takes batches until nothing waits; gives the names in each. */
function drain(
  queue: WaitingQueue<TestCall>,
  limits: { maxBatchItems: number; maxBatchTokens: number },
  beforeEach: (batch: number) => void = () => undefined,
): { name: string; index: number; lane: Lane }[][] {
  const batches: { name: string; index: number; lane: Lane }[][] = [];
  for (;;) {
    beforeEach(batches.length);
    const picked = pick(queue, limits, 1);
    if (picked === null) return batches;
    batches.push(
      queue.take(picked).map(({ call, item }) => ({ name: call.name, index: item.index, lane: picked.lane })),
    );
  }
}

describe('the turns of the calls', () => {
  const limits = { maxBatchItems: 16, maxBatchTokens: 256 };

  it('bring every waiting item to a batch exactly once, each call in its own order', () => {
    fc.assert(
      fc.property(anyCalls, anyCalls, anyLimits, (interactive, bulk, anyLimit) => {
        const queue = new WaitingQueue<TestCall>();
        const expected = [...interactive, ...bulk].map((call) => call.waiting.map(({ index }) => index));
        const calls = [
          ...interactive.map((call) => ({ ...call, name: `i${call.name}` })),
          ...bulk.map((call) => ({ ...call, name: `b${call.name}` })),
        ];
        for (const call of calls) queue.add(call, call.name.startsWith('i') ? 'interactive' : 'bulk');
        const batches = drain(queue, anyLimit).flat();
        expect(calls.map(({ name }) => batches.filter((each) => each.name === name).map(({ index }) => index))).toEqual(
          expected,
        );
      }),
    );
  });

  it.each([
    ['of the same key', plainKey, 8],
    ['of the same key, as long as a batch', plainKey, 256],
    ['of another key', { modelId: 'b', head: 'dense', queryRows: null } as const, 8],
  ])('let a call of one item %s wait for at most one batch of a call of 2,048', (_, key, tokens) => {
    const queue = new WaitingQueue<TestCall>();
    queue.add(callOf('large', plainKey, alike(2048, 20)), 'bulk');
    const batches = drain(queue, limits, (batch) => {
      if (batch === 3) queue.add(callOf('single', key, alike(1, tokens)), 'bulk');
    });
    const served = batches.findIndex((batch) => batch.some(({ name }) => name === 'single'));
    expect(served).toBeGreaterThanOrEqual(3);
    expect(served).toBeLessThanOrEqual(4);
  });

  it('give bulk work a batch after each few interactive ones, however many keep coming', () => {
    const queue = new WaitingQueue<TestCall>();
    queue.add(callOf('bulk', plainKey, alike(160)), 'bulk');
    const batches = drain(queue, limits, (batch) => {
      if (batch < 100) queue.add(callOf(`i${batch}`, plainKey, alike(16)), 'interactive');
    });
    const bulkAt = batches.flatMap(([first], at) => (first?.lane === 'bulk' ? [at] : []));
    expect(bulkAt.slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, at) => at * 5 + maxInteractiveInARow));
  });

  it('do not hold it against interactive work that it ran while no bulk work waited', () => {
    const queue = new WaitingQueue<TestCall>();
    queue.add(callOf('early', plainKey, alike(160)), 'interactive');
    const batches = drain(queue, limits, (batch) => {
      if (batch === 8) queue.add(callOf('bulk', plainKey, alike(1)), 'bulk');
    });
    expect(batches.findIndex(([first]) => first?.lane === 'bulk')).toBe(10);
  });
});
