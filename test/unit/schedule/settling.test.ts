import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunItem } from '../../../src/executor/protocol.ts';
import { maxLostRuns } from '../../../src/schedule/loop.ts';
import { itemOf, rowOf, rowsOf } from './fake-pool.ts';
import { createRig, idle, type StartedCall } from './rig.ts';
import { shapeOf, type ShapeOptions } from './shapes.ts';

type Step =
  | {
      readonly do: 'start';
      readonly texts: readonly { readonly id: number; readonly tokens: number }[];
      readonly model: string;
      readonly head: 'dense' | 'logit';
      readonly isBulk: boolean;
    }
  | {
      readonly do: 'abort' | 'succeed' | 'runFailed' | 'outOfMemory' | 'executorGone' | 'timedOut' | 'nan';
      readonly which: number;
    }
  | { readonly do: 'revive' };

const start = fc.record({
  do: fc.constant('start' as const),
  // Few different texts, so that many of them share runs.
  texts: fc.array(fc.record({ id: fc.integer({ min: 1, max: 4 }), tokens: fc.constantFrom(1, 2, 9, 30) }), {
    minLength: 1,
    maxLength: 9,
  }),
  model: fc.constantFrom('m', 'n'),
  head: fc.constantFrom('dense' as const, 'logit' as const),
  isBulk: fc.boolean(),
});
const act = fc.record({
  do: fc.constantFrom(
    ...([
      'abort',
      'succeed',
      'succeed',
      'succeed',
      'runFailed',
      'outOfMemory',
      'executorGone',
      'timedOut',
      'nan',
    ] as const),
  ),
  which: fc.nat({ max: 20 }),
});
const steps: fc.Arbitrary<Step[]> = fc.array(fc.oneof(start, act, act, fc.constant({ do: 'revive' } as const)), {
  maxLength: 30,
});

/** What is known of an item: how often it reached a device itself, and whether it had an end. */
interface Known {
  readonly text: string;
  runs: number;
  hasSucceeded: boolean;
  isAborted: boolean;
}

const anyKind = fc.constantFrom<ShapeOptions['kind']>('alone', 'equalLength', 'padded');
const textOf = (model: string, { ids }: RunItem) => `${model} ${ids.join(' ')}`;

/** A millisecond and a tenth for each token: no sum of them is free of rounding. */
const cost = { fixedMs: 1.3, tokenMs: 0.1, squaredTokenMs: 0.001 };

describe('the scheduler, whatever happens to its runs', () => {
  it('settles every call once with its own rows in order, runs nothing that was cancelled, and ends with zero gauges', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), anyKind, async (script, executors, kind) => {
        const limits = { maxBatchItems: 4, maxBatchTokens: 40 };
        const rig = createRig({ executors, shape: shapeOf({ kind, limits, cost }) });
        const { pool, scheduler } = rig;
        const calls: StartedCall[] = [];
        // By the ids of an item: those are the same array in whatever shape it reaches an executor.
        const known = new Map<Int32Array, Known>();
        const owner = new Map<Int32Array, StartedCall>();
        let seenBatches = 0;
        const settlements = new Map<StartedCall, number>();
        const doneWhenSettled = new Map<StartedCall, number>();

        const observe = () => {
          for (const { items } of pool.batches.slice(seenBatches)) {
            for (const { ids } of items) {
              const about = known.get(ids);
              // Another call may still want the text of one that has left.
              const wanting = [...known.values()].filter(({ text, isAborted }) => text === about?.text && !isAborted);
              expect(wanting.length).toBeGreaterThan(0);
              expect(about?.hasSucceeded).toBe(false);
              if (about !== undefined) about.runs += 1;
              expect(about?.runs).toBeLessThanOrEqual(maxLostRuns + 1);
            }
          }
          seenBatches = pool.batches.length;
          const { queuedItems, queuedTokens, queuedMs, runningItems, runningMs } = scheduler.gauges;
          expect(Math.min(queuedItems, queuedTokens, runningItems)).toBeGreaterThanOrEqual(0);
          expect([queuedMs > 0, runningMs > 0]).toEqual([queuedItems > 0, runningItems > 0]);
          // An executor that could run something never idles while something waits.
          expect(pool.idleCount('m') === 0 || queuedItems === 0).toBe(true);
          const open = [...owner].filter(([, call]) => call.settled() === undefined).length;
          expect(queuedItems + runningItems).toBeLessThanOrEqual(open);
        };

        const perform = async (step: Step) => {
          if (step.do === 'start') {
            const items = step.texts.map(({ id, tokens }) => itemOf(id, tokens));
            const call = rig.start(items, {
              key: { modelId: step.model, head: step.head, queryRows: null },
              lane: step.isBulk ? 'bulk' : 'interactive',
            });
            calls.push(call);
            void call.outcome.then(() => {
              settlements.set(call, (settlements.get(call) ?? 0) + 1);
              doneWhenSettled.set(call, call.doneCount());
            });
            for (const item of items) {
              known.set(item.ids, { text: textOf(step.model, item), runs: 0, hasSucceeded: false, isAborted: false });
              owner.set(item.ids, call);
            }
            return pool.settle();
          }
          if (step.do === 'revive') return pool.revive();
          if (step.do === 'abort') {
            const call = calls[step.which % Math.max(1, calls.length)];
            for (const { ids } of call?.items ?? []) Object.assign(known.get(ids) ?? {}, { isAborted: true });
            call?.abort();
            return pool.settle();
          }
          const run = pool.pending[step.which % Math.max(1, pool.pending.length)];
          if (run === undefined) return;
          if (step.do === 'succeed') {
            for (const { ids } of run.batch.items) Object.assign(known.get(ids) ?? {}, { hasSucceeded: true });
            // What was skipped in the middle of a run has a row or none.
            return run.succeed(step.which % 2 === 0 ? undefined : run.batch.items.map(rowsOf));
          }
          if (step.do === 'nan') {
            const rows = run.batch.items.map(rowsOf);
            rows[step.which % rows.length] = { values: Float32Array.of(Number.NaN), indices: null };
            return run.succeed(rows);
          }
          return run.fail(step.do);
        };

        for (const step of script) {
          await perform(step);
          observe();
        }
        await perform({ do: 'revive' });
        observe();
        while (pool.pending[0] !== undefined) {
          await perform({ do: 'succeed', which: 0 });
          observe();
        }

        for (const call of calls) {
          const settled = call.settled();
          expect(settlements.get(call)).toBe(1);
          expect(call.doneCount()).toBe(doneWhenSettled.get(call));
          if (settled?.status !== 'fulfilled') continue;
          expect(settled.value.rows.map(({ values }) => values)).toEqual(call.items.map((item) => rowOf(item).values));
        }
        expect(scheduler.gauges).toEqual(idle);
        expect(scheduler.predictedDrainMs()).toBe(0);
        expect(pool.idleCount('m')).toBe(executors);
      }),
      { numRuns: 400 },
    );
  });
});
