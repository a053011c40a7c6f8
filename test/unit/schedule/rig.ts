/** Owns a scheduler over a fake pool, with everything it tells recorded. */
import type { BatchShape } from '../../../src/device/batch-shape.ts';
import { ServiceError } from '../../../src/errors.ts';
import type { RunBatch, RunItem, RunRow } from '../../../src/executor/protocol.ts';
import type { Job, JobOutcome } from '../../../src/schedule/call.ts';
import type { RunObserver } from '../../../src/schedule/loop.ts';
import { createScheduler, type Scheduler } from '../../../src/schedule/scheduler.ts';
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts';
import { createFakePool, type FakePool } from './fake-pool.ts';

/** What is told to observers. */
export interface Told {
  readonly runs: Parameters<RunObserver['onRun']>[0][];
  readonly lostRuns: Parameters<RunObserver['onLostRun']>[0][];
  readonly badResults: Parameters<RunObserver['onBadResult']>[0][];
}

/** A call on its way. */
export interface StartedCall {
  readonly items: readonly RunItem[];
  readonly outcome: Promise<PromiseSettledResult<JobOutcome>>;
  /** What it settled with, undefined until then. */
  settled(): PromiseSettledResult<JobOutcome> | undefined;
  abort(): void;
  doneCount(): number;
}

/** Everything a scheduler test needs. */
export interface Rig {
  readonly scheduler: Scheduler;
  readonly pool: FakePool;
  readonly clock: FakeClock;
  readonly told: Told;
  /** Admits the items as one call, runs them, and releases the admission when that is over. */
  start(items: readonly RunItem[], job?: Partial<Job>): StartedCall;
}

/** The reason of every abort in these tests. */
export const cancelledReason = new ServiceError('cancelled', 'The call was cancelled');

/** A scheduler over `executors` fake executors. */
export function createRig(
  options: {
    executors?: number;
    maxQueuedItems?: number;
    maxQueuedTokens?: number;
    maxBatchItems?: number;
    maxBatchTokens?: number;
    answer?: (batch: RunBatch) => readonly RunRow[];
    /** How items are run; each alone, at a millisecond a token, where left out. */
    shape?: BatchShape;
    /** When the loop looks at what has arrived; at once where left out. */
    soon?: (callback: () => void) => void;
  } = {},
): Rig {
  const clock = createFakeClock();
  const { executors, answer, shape, maxBatchItems = 4, maxBatchTokens = 64 } = options;
  const pool = createFakePool({
    limits: { maxBatchItems, maxBatchTokens },
    ...(executors === undefined ? {} : { executors }),
    ...(answer === undefined ? {} : { answer }),
    ...(shape === undefined ? {} : { shape }),
  });
  const told: Told = { runs: [], lostRuns: [], badResults: [] };
  const scheduler = createScheduler({
    pool,
    clock,
    soon: options.soon ?? ((callback) => callback()),
    limits: {
      maxQueuedItems: options.maxQueuedItems ?? 10_000,
      maxQueuedTokens: options.maxQueuedTokens ?? 1_000_000,
    },
    observer: {
      onRun: (run) => told.runs.push(run),
      onLostRun: (lost) => told.lostRuns.push(lost),
      onBadResult: (bad) => told.badResults.push(bad),
    },
  });
  return {
    scheduler,
    pool,
    clock,
    told,
    start(items, job = {}) {
      const controller = new AbortController();
      const tokens = items.reduce((sum, { ids }) => sum + ids.length, 0);
      let doneCount = 0;
      let settled: PromiseSettledResult<JobOutcome> | undefined;
      const run = async () => {
        const admission = scheduler.admit('m', { items: items.length, tokens }, 60_000);
        try {
          return await admission.run({
            key: { modelId: 'm', head: 'dense', queryRows: null },
            lane: 'interactive',
            items,
            signal: controller.signal,
            fieldOf: (index) => `inputs[${index}]`,
            onItemDone: () => (doneCount += 1),
            ...job,
          });
        } finally {
          admission.release();
        }
      };
      const outcome = Promise.allSettled([run()]).then(([result]) => (settled = result));
      return {
        items,
        outcome,
        settled: () => settled,
        abort() {
          controller.abort(cancelledReason);
        },
        doneCount: () => doneCount,
      };
    },
  };
}

/** The error a call settled with. */
export function errorOf(call: StartedCall): ServiceError {
  const settled = call.settled();
  if (settled?.status === 'rejected' && settled.reason instanceof ServiceError) return settled.reason;
  throw new Error(`no ServiceError but ${JSON.stringify(settled)}`);
}

/** First value of each row a call settled with. */
export function firstValues(call: StartedCall): (number | undefined)[] {
  const settled = call.settled();
  if (settled?.status === 'fulfilled') return settled.value.rows.map(({ values }) => values[0]);
  throw new Error(`no rows but ${JSON.stringify(settled)}`);
}

/** Nothing queued, nothing running. */
export const idle = { queuedItems: 0, queuedTokens: 0, queuedMs: 0, runningItems: 0, runningMs: 0 };
