import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunItem } from '../../../src/executor/protocol.ts';
import { maxLostRuns } from '../../../src/schedule/loop.ts';
import { itemOf, rowOf } from './fake-pool.ts';
import { createRig, idle, type StartedCall } from './rig.ts';

type Step =
  | { readonly do: 'start'; readonly tokens: readonly number[]; readonly model: string; readonly isBulk: boolean }
  | {
      readonly do: 'abort' | 'succeed' | 'runFailed' | 'outOfMemory' | 'executorGone' | 'timedOut' | 'nan';
      readonly which: number;
    }
  | { readonly do: 'revive' };

const start = fc.record({
  do: fc.constant('start' as const),
  tokens: fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 9 }),
  model: fc.constantFrom('m', 'n'),
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

/** What the model knows of an item: how often it reached a device, and whether it had an end. */
interface Known {
  runs: number;
  hasSucceeded: boolean;
  isAborted: boolean;
}

describe('the scheduler, whatever happens to its runs', () => {
  it('settles every call once with its own rows in order, runs nothing that was cancelled, and ends with zero gauges', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), async (script, executors) => {
        const rig = createRig({ executors, maxBatchItems: 4, maxBatchTokens: 40 });
        const { pool, scheduler } = rig;
        const calls: StartedCall[] = [];
        const known = new Map<RunItem, Known>();
        const owner = new Map<RunItem, StartedCall>();
        let seenBatches = 0;
        let serial = 0;
        const settlements = new Map<StartedCall, number>();

        const observe = () => {
          for (const { items } of pool.batches.slice(seenBatches)) {
            for (const item of items) {
              const about = known.get(item);
              expect(about?.isAborted).toBe(false);
              expect(about?.hasSucceeded).toBe(false);
              if (about !== undefined) about.runs += 1;
              expect(about?.runs).toBeLessThanOrEqual(maxLostRuns + 1);
            }
          }
          seenBatches = pool.batches.length;
          const { queuedItems, queuedTokens, runningItems } = scheduler.gauges;
          expect(Math.min(queuedItems, queuedTokens, runningItems)).toBeGreaterThanOrEqual(0);
          const open = [...owner].filter(([, call]) => call.settled() === undefined).length;
          expect(queuedItems + runningItems).toBeLessThanOrEqual(open);
        };

        const perform = async (step: Step) => {
          if (step.do === 'start') {
            const items = step.tokens.map((tokens) => itemOf((serial += 1), tokens));
            const call = rig.start(items, {
              key: { modelId: step.model, head: 'dense', queryRows: null },
              lane: step.isBulk ? 'bulk' : 'interactive',
            });
            calls.push(call);
            void call.outcome.then(() => settlements.set(call, (settlements.get(call) ?? 0) + 1));
            for (const item of items) {
              known.set(item, { runs: 0, hasSucceeded: false, isAborted: false });
              owner.set(item, call);
            }
            return pool.settle();
          }
          if (step.do === 'revive') return pool.revive();
          if (step.do === 'abort') {
            const call = calls[step.which % Math.max(1, calls.length)];
            for (const item of call?.items ?? []) Object.assign(known.get(item) ?? {}, { isAborted: true });
            call?.abort();
            return pool.settle();
          }
          const run = pool.pending[step.which % Math.max(1, pool.pending.length)];
          if (run === undefined) return;
          if (step.do === 'succeed') {
            for (const item of run.batch.items) Object.assign(known.get(item) ?? {}, { hasSucceeded: true });
            return run.succeed();
          }
          if (step.do === 'nan') {
            const rows = run.batch.items.map(rowOf);
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
          if (settled?.status === 'fulfilled') expect(settled.value.rows).toEqual(call.items.map(rowOf));
        }
        expect(scheduler.gauges).toEqual(idle);
        expect(scheduler.predictedDrainMs()).toBe(0);
        expect(pool.idleCount('m')).toBe(executors);
      }),
      { numRuns: 400 },
    );
  });
});
