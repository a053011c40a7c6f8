import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batchMs, type BatchShape } from '../../../src/device/batch-shape.ts';
import type { BatchLimits } from '../../../src/device/budget.ts';
import {
  jobSliceMs,
  maxInteractiveInARow,
  maxSliceMs,
  pickBatch,
  pickTurn,
  type SliceMs,
} from '../../../src/schedule/batcher.ts';
import type { Item, Lane, RunKey } from '../../../src/schedule/item.ts';
import { WaitingQueue, type WaitingCall } from '../../../src/schedule/queue.ts';
import type { QueueView } from '../../../src/schedule/view.ts';
import { shapeOf, type ShapeOptions } from './shapes.ts';

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
    // Of another time and another device: no batch is measured by it.
    expectedMs: 1e9,
    index,
    fingerprint: 0,
    queuedAtMs: 0,
    state: 'queued',
    lostRuns: 0,
    lostStarts: 0,
    mustRunAlone,
  }));
  return { name, key, waiting };
}

const anyModel = () => true;
const laneOf = (view: QueueView) => pickTurn(view, anyModel)?.lane ?? null;

/** The batch of whoever's turn it is, where every model can run. */
function pick<Call extends WaitingCall>(
  view: QueueView<Call>,
  shape: BatchShape,
  activeExecutors: number,
  { nowMs = 0, sliceMs = maxSliceMs }: { nowMs?: number; sliceMs?: SliceMs } = {},
) {
  const turn = pickTurn(view, anyModel);
  return turn === null ? null : pickBatch(view, turn, { shape, activeExecutors, sliceMs, nowMs });
}

/** Texts that run alone in no time, so that only the limits bound a batch. */
const untimed = (limits: BatchLimits) =>
  shapeOf({ kind: 'alone', limits, cost: { fixedMs: 0, tokenMs: 0, squaredTokenMs: 0 } });

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
const anyShape = fc
  .record({
    kind: fc.constantFrom<ShapeOptions['kind']>('alone', 'equalLength', 'padded'),
    provider: fc.constantFrom<NonNullable<ShapeOptions['provider']>>('cpu', 'webgpu', 'cuda'),
    fixedBatch: fc.constantFrom(null, 3),
    limits: anyLimits,
    cost: fc.record({
      fixedMs: fc.integer({ min: 0, max: 20 }),
      tokenMs: fc.integer({ min: 0, max: 4 }),
      squaredTokenMs: fc.constantFrom(0, 0.01),
    }),
  })
  .map(shapeOf);
const executors = fc.integer({ min: 0, max: 8 });
/** Before and after the item whose turn it is has been overtaken for too long. */
const anyNow = fc.constantFrom(0, 1000);
/** Of a server, and of a job. */
const anySlices = fc.constantFrom(maxSliceMs, jobSliceMs);
const isSameKey = (left: RunKey, right: RunKey) =>
  left.modelId === right.modelId && left.head === right.head && left.queryRows === right.queryRows;

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

  it('makes bulk work due once it was overtaken often enough, and interactive work never', () => {
    const isDue = (interactive: number, interactiveInARow: number) => {
      const lanes = {
        interactive: [callOf('y', plainKey, alike(interactive))],
        bulk: [callOf('x', plainKey, alike(1))],
      };
      const view = { lanes: interactive === 0 ? { ...lanes, interactive: [] } : lanes, interactiveInARow };
      const { lane, isDue: isDueNow } = pickTurn(view, anyModel) ?? {};
      return [lane, isDueNow];
    };
    expect(isDue(1, maxInteractiveInARow - 1)).toEqual(['interactive', false]);
    expect(isDue(0, maxInteractiveInARow - 1)).toEqual(['bulk', false]);
    expect(isDue(1, maxInteractiveInARow)).toEqual(['bulk', true]);
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
  /** Checks a rule of whatever is picked from whatever waits. */
  function holds(
    rule: (facts: {
      view: QueueView<TestCall>;
      shape: BatchShape;
      active: number;
      picked: NonNullable<ReturnType<typeof pick<TestCall>>>;
      items: readonly Item[];
      sliceMs: SliceMs;
    }) => void,
  ): void {
    fc.assert(
      fc.property(anyView, anyShape, executors, anyNow, anySlices, (view, shape, active, nowMs, sliceMs) => {
        const picked = pick(view, shape, active, { nowMs, sliceMs });
        if (picked === null) return;
        rule({ view, shape, active, picked, items: picked.items.map(({ item }) => item), sliceMs });
      }),
      { numRuns: 500 },
    );
  }

  it('is there exactly when something waits, of the lane whose turn it is', () => {
    fc.assert(
      fc.property(anyView, anyShape, executors, (view, shape, active) => {
        const picked = pick(view, shape, active);
        expect(picked?.lane ?? null).toBe(laneOf(view));
        if (picked !== null) expect(picked.items.length).toBeGreaterThanOrEqual(1);
      }),
    );
  });

  it('takes the oldest item of the call whose turn it is, where texts run alone or it has waited too long', () => {
    fc.assert(
      fc.property(anyView, anyShape, executors, anyNow, (view, shape, active, nowMs) => {
        const picked = pick(view, shape, active, { nowMs });
        if (picked === null || (!shape.isAlone && nowMs === 0)) return;
        expect(picked.items.map(({ item }) => item)).toContain(view.lanes[picked.lane][0]?.waiting[0]);
      }),
      { numRuns: 500 },
    );
  });

  it('never exceeds the limits, except for one item that alone is too large', () => {
    holds(({ items, shape: { limits } }) => {
      expect(items.length).toBeLessThanOrEqual(limits.maxBatchItems);
      const tokens = items.reduce((sum, item) => sum + item.tokens, 0);
      if (items.length > 1) expect(tokens).toBeLessThanOrEqual(limits.maxBatchTokens);
    });
  });

  it('never takes more than the slice of its lane, except where one of its texts alone takes as long', () => {
    holds(({ items, shape, picked, sliceMs }) => {
      const alone = Math.max(...items.map(({ tokens }) => batchMs(shape, [tokens])));
      expect(picked.expectedMs).toBeLessThanOrEqual(Math.max(sliceMs[picked.lane], alone) + 1e-9);
    });
  });

  it('is expected to take what the device makes of it, whatever was expected when its items came', () => {
    holds(({ items, shape, picked }) => {
      const lengths = items.map(({ tokens }) => tokens);
      expect(picked.expectedMs).toBeCloseTo(batchMs(shape, lengths), 6);
    });
  });

  it('takes no more than a fair share for each executor', () => {
    holds(({ items, view, active, picked }) => {
      const key = items[0]?.key;
      const waiting = view.lanes[picked.lane].flatMap((call) => call.waiting);
      const sharing = waiting.filter((item) => key !== undefined && isSameKey(item.key, key)).length;
      expect(items.length).toBeLessThanOrEqual(Math.ceil(sharing / Math.max(1, active)));
    });
  });

  it('joins only items of one model, one head and one query', () => {
    holds(({ items: [first, ...rest] }) => {
      for (const { key } of rest) expect(first !== undefined && isSameKey(key, first.key)).toBe(true);
    });
  });

  it('takes only items that wait, each at most once, and alone those that must run alone', () => {
    holds(({ view, picked, items }) => {
      for (const { call, item } of picked.items) {
        expect(view.lanes[picked.lane]).toContain(call);
        expect(call.waiting).toContain(item);
      }
      expect(new Set(items).size).toBe(items.length);
      if (items.some((item) => item.mustRunAlone)) expect(items).toHaveLength(1);
    });
  });

  it('of texts that run alone takes no more than an executor’s share of the time that waits, or one text', () => {
    holds(({ view, shape, active, picked }) => {
      const [first, ...others] = picked.items;
      if (!shape.isAlone || first === undefined || others.length === 0) return;
      const sharing = view.lanes[picked.lane].filter(({ key }) => isSameKey(key, first.item.key));
      const waitingMs = sharing
        .flatMap(({ waiting }) => waiting)
        .reduce((sum, { tokens }) => sum + shape.textMs(tokens), 0);
      expect(picked.expectedMs).toBeLessThanOrEqual(waitingMs / Math.max(1, active) + 1e-6);
    });
  });

  it('is spread over all executors', () => {
    const lanes = { interactive: [], bulk: [callOf('x', plainKey, alike(16))] };
    const shape = untimed({ maxBatchItems: 16, maxBatchTokens: 1000 });
    expect(pick({ lanes, interactiveInARow: 0 }, shape, 4)?.items).toHaveLength(4);
  });

  it('fills up with whatever still fits, in turns', () => {
    const long = callOf('long', plainKey, [{ tokens: 5 }, { tokens: 50 }]);
    const short = callOf('short', plainKey, alike(3));
    const lanes = { interactive: [long, short], bulk: [] };
    const picked = pick({ lanes, interactiveInARow: 0 }, untimed({ maxBatchItems: 8, maxBatchTokens: 10 }), 1);
    expect(picked?.items.map(({ call, item }) => [call.name, item.index])).toEqual([
      ['long', 0],
      ['short', 0],
      ['short', 1],
      ['short', 2],
    ]);
  });

  it('changes nothing that waits', () => {
    fc.assert(
      fc.property(anyView, anyShape, executors, anyNow, (view, shape, active, nowMs) => {
        const before = JSON.stringify(view);
        pick(view, shape, active, { nowMs });
        expect(JSON.stringify(view)).toBe(before);
      }),
    );
  });
});

/** Takes batches until nothing waits, one every 30 ms; gives the names in each. */
function drain(
  queue: WaitingQueue<TestCall>,
  shape: BatchShape,
  beforeEach: (batch: number) => void = () => undefined,
): { name: string; index: number; lane: Lane }[][] {
  const batches: { name: string; index: number; lane: Lane }[][] = [];
  for (;;) {
    beforeEach(batches.length);
    const picked = pick(queue, shape, 1, { nowMs: batches.length * 30 });
    if (picked === null) return batches;
    queue.take(picked);
    batches.push(picked.items.map(({ call, item }) => ({ name: call.name, index: item.index, lane: picked.lane })));
  }
}

describe('the turns of the calls', () => {
  const shape = untimed({ maxBatchItems: 16, maxBatchTokens: 256 });

  /** Drains both lanes; gives the calls, and the indexes of each in the order in which they were taken. */
  function drainAll(interactive: readonly TestCall[], bulk: readonly TestCall[], anyShapeNow: BatchShape) {
    const queue = new WaitingQueue<TestCall>();
    const calls = [
      ...interactive.map((call) => ({ ...call, name: `i${call.name}` })),
      ...bulk.map((call) => ({ ...call, name: `b${call.name}` })),
    ];
    const expected = calls.map((call) => call.waiting.map(({ index }) => index));
    for (const call of calls) queue.add(call, call.name.startsWith('i') ? 'interactive' : 'bulk');
    const batches = drain(queue, anyShapeNow).flat();
    const taken = calls.map(({ name }) => batches.filter((each) => each.name === name).map(({ index }) => index));
    return { expected, taken, isEmpty: queue.isEmpty };
  }

  it('bring every waiting item to a batch exactly once', () => {
    fc.assert(
      fc.property(anyCalls, anyCalls, anyShape, (interactive, bulk, shapeNow) => {
        const { expected, taken, isEmpty } = drainAll(interactive, bulk, shapeNow);
        expect(taken.map((indexes) => indexes.sort((left, right) => left - right))).toEqual(expected);
        expect(isEmpty).toBe(true);
      }),
    );
  });

  it('take each call in its own order, where it does not matter which texts run together', () => {
    fc.assert(
      fc.property(anyCalls, anyCalls, anyLimits, (interactive, bulk, limits) => {
        const { expected, taken } = drainAll(interactive, bulk, shapeOf({ kind: 'alone', limits }));
        expect(taken).toEqual(expected);
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
    const batches = drain(queue, shape, (batch) => {
      if (batch === 3) queue.add(callOf('single', key, alike(1, tokens)), 'bulk');
    });
    const served = batches.findIndex((batch) => batch.some(({ name }) => name === 'single'));
    expect(served).toBeGreaterThanOrEqual(3);
    expect(served).toBeLessThanOrEqual(4);
  });

  it('give bulk work a batch after each few interactive ones, however many keep coming', () => {
    const queue = new WaitingQueue<TestCall>();
    queue.add(callOf('bulk', plainKey, alike(160)), 'bulk');
    const batches = drain(queue, shape, (batch) => {
      if (batch < 100) queue.add(callOf(`i${batch}`, plainKey, alike(16)), 'interactive');
    });
    const bulkAt = batches.flatMap(([first], at) => (first?.lane === 'bulk' ? [at] : []));
    expect(bulkAt.slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, at) => at * 5 + maxInteractiveInARow));
  });

  it('do not hold it against interactive work that it ran while no bulk work waited', () => {
    const queue = new WaitingQueue<TestCall>();
    queue.add(callOf('early', plainKey, alike(160)), 'interactive');
    const batches = drain(queue, shape, (batch) => {
      if (batch === 8) queue.add(callOf('bulk', plainKey, alike(1)), 'bulk');
    });
    expect(batches.findIndex(([first]) => first?.lane === 'bulk')).toBe(10);
  });
});
