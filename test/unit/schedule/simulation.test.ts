import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxInteractiveInARow, maxSliceMs } from '../../../src/schedule/batcher.ts';
import { batchMs } from '../../../src/device/batch-shape.ts';
import { maxUrgentInARow } from '../../../src/executor/run-queue.ts';
import type { Lane } from '../../../src/schedule/item.ts';
import { itemOf, rowOf, type PendingRun } from './fake-pool.ts';
import { createRig, idle, type Rig } from './rig.ts';
import { shapeOf, type ShapeOptions } from './shapes.ts';

interface Arrival {
  /** Since the one before. */
  readonly afterMs: number;
  readonly lane: Lane;
  readonly lengths: readonly number[];
}

const anyArrival: fc.Arbitrary<Arrival> = fc.record({
  afterMs: fc.integer({ min: 0, max: 40 }),
  lane: fc.constantFrom<Lane>('interactive', 'interactive', 'bulk'),
  lengths: fc.oneof(
    { weight: 3, arbitrary: fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 10, maxLength: 40 }) },
  ),
});
const anyKind = fc.constantFrom<ShapeOptions['kind']>('alone', 'equalLength', 'padded');
const anyProvider = fc.constantFrom<NonNullable<ShapeOptions['provider']>>('cpu', 'webgpu');
const limits = { maxBatchItems: 16, maxBatchTokens: 512 };
const cost = { fixedMs: 2, tokenMs: 0.3, squaredTokenMs: 0.001 };

/** Lets calls arrive and runs end in the order of time; every run takes exactly what it should. */
async function simulate(
  arrivals: readonly Arrival[],
  executors: number,
  shape: ReturnType<typeof shapeOf>,
  look: (rig: Rig) => void = () => undefined,
) {
  const rig = createRig({ executors, shape });
  const { pool, clock } = rig;
  const lanes = new Map<Int32Array, Lane>();
  const ends = new Map<PendingRun, number>();
  const calls: ReturnType<typeof rig.start>[] = [];
  let serial = 0;
  let seenBatches = 0;
  /** Interactive batches that were begun in a row while bulk work waited, here or at an executor. */
  const overtakings: number[] = [];
  let inARow = 0;
  let waitingBulk = 0;
  const note = () => {
    for (const { items } of pool.batches.slice(seenBatches)) {
      const isBulk = items.some(({ ids }) => lanes.get(ids) === 'bulk');
      inARow = isBulk || waitingBulk === 0 ? 0 : inARow + 1;
      if (isBulk) waitingBulk -= items.length;
      overtakings.push(inARow);
    }
    seenBatches = pool.batches.length;
    for (const run of pool.pending) {
      if (ends.has(run)) continue;
      const lengths = run.batch.items.map(({ ids }) => ids.length);
      ends.set(run, clock.nowMs() + batchMs(shape, lengths));
    }
    look(rig);
  };
  const endUntil = async (untilMs: number) => {
    for (;;) {
      const [next] = pool.pending.toSorted((left, right) => (ends.get(left) ?? 0) - (ends.get(right) ?? 0));
      const endMs = (next && ends.get(next)) ?? Infinity;
      if (next === undefined || endMs > untilMs) break;
      await clock.advance(Math.max(0, endMs - clock.nowMs()));
      await next.succeed(undefined, endMs);
      note();
    }
    if (Number.isFinite(untilMs)) await clock.advance(Math.max(0, untilMs - clock.nowMs()));
  };
  let atMs = 0;
  for (const { afterMs, lane, lengths } of arrivals) {
    await endUntil((atMs += afterMs));
    const items = lengths.map((tokens) => itemOf((serial += 1), tokens));
    for (const { ids } of items) lanes.set(ids, lane);
    if (lane === 'bulk') waitingBulk += items.length;
    calls.push(rig.start(items, { lane }));
    await pool.settle();
    note();
  }
  await endUntil(Infinity);
  return { ...rig, calls, mostInARow: Math.max(0, ...overtakings) };
}

describe('with calls of any lengths at any times in both lanes', () => {
  it('every item runs exactly once, no executor idles while something waits, and no batch takes more than its slice', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyArrival, { minLength: 1, maxLength: 15 }),
        fc.integer({ min: 1, max: 3 }),
        anyKind,
        anyProvider,
        async (arrivals, executors, kind, provider) => {
          const shape = shapeOf({ kind, provider, limits, cost });
          const { pool, scheduler, calls } = await simulate(arrivals, executors, shape, (rig) => {
            expect(rig.pool.idleCount('m') === 0 || rig.scheduler.gauges.queuedItems === 0).toBe(true);
          });
          const ran = pool.batches.flatMap(({ items }) => items.map(({ ids }) => ids[0]));
          expect(ran.toSorted((a = 0, b = 0) => a - b)).toEqual(ran.map((_, at) => at + 1));
          for (const { items, settled } of calls) {
            const end = settled();
            expect(end?.status === 'fulfilled' ? end.value.rows : end).toEqual(items.map(rowOf));
          }
          for (const { batch, expectedMs } of pool.given) {
            const alone = Math.max(...batch.items.map(({ ids }) => batchMs(shape, [ids.length])));
            expect(expectedMs).toBeLessThanOrEqual(Math.max(maxSliceMs.bulk, alone) + 1e-9);
          }
          expect(scheduler.gauges).toEqual(idle);
          expect(scheduler.predictedDrainMs()).toBe(0);
        },
      ),
      { numRuns: 150 },
    );
  });

  it(`bulk work is overtaken by at most ${maxInteractiveInARow} interactive batches in the queue and ${maxUrgentInARow} at each executor, beside the one given before`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyArrival, { minLength: 20, maxLength: 40 }),
        fc.integer({ min: 1, max: 2 }),
        anyKind,
        async (arrivals, executors, kind) => {
          // Faster than it can be served, so that both lanes wait nearly always.
          const dense = arrivals.map((arrival) => ({ ...arrival, afterMs: arrival.afterMs / 4 }));
          const shape = shapeOf({ kind, limits, cost });
          const { mostInARow } = await simulate(dense, executors, shape);
          expect(mostInARow).toBeLessThanOrEqual(maxInteractiveInARow + executors * (maxUrgentInARow + 1));
        },
      ),
      { numRuns: 100 },
    );
  });
});
