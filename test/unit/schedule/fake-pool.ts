/** Owns a device pool without devices: every run waits until the test says how it ends. */
import type { BatchShape } from '../../../src/device/batch-shape.ts';
import type { BatchLimits } from '../../../src/device/budget.ts';
import { OpenRuns, type OpenRun } from '../../../src/device/open-runs.ts';
import {
  RunFailure,
  type DevicePool,
  type GivenBatch,
  type RunResult,
  type TakeWish,
} from '../../../src/device/pool.ts';
import type { Head, RunBatch, RunItem, RunRow } from '../../../src/executor/protocol.ts';
import { createRunQueue, type QueuedRun, type RunQueue } from '../../../src/executor/run-queue.ts';
import { shapeOf } from './shapes.ts';

/** A run that an executor is at. */
export interface PendingRun {
  readonly executorId: string;
  readonly batch: RunBatch;
  readonly isUrgent: boolean;
  /** Positions that nobody waits for any more. */
  readonly skipped: ReadonlySet<number>;
  /** Ends it with these rows, or with `rowOf` for each item that was not skipped. */
  succeed(rows?: readonly (RunRow | null)[], computeMs?: number): Promise<void>;
  /** Ends it with a failure; a lost executor stays away until `revive`, and what it had not begun has not started. */
  fail(kind: Exclude<RunFailure['kind'], 'notStarted'>): Promise<void>;
  /** Ends it with an error that is no RunFailure. */
  crash(error: Error): Promise<void>;
}

/** A batch as an executor was given it. */
export interface GivenRun {
  readonly executorId: string;
  readonly batch: RunBatch;
  readonly isUrgent: boolean;
  readonly expectedMs: number;
  /** Each time that positions were taken back. */
  readonly skips: readonly (readonly number[])[];
}

/** A pool with the strings to pull. */
export interface FakePool extends DevicePool {
  /** One for each executor that runs something, those that were begun first first. */
  readonly pending: readonly PendingRun[];
  /** Every batch that was begun, in order, without the items that had been skipped by then. */
  readonly batches: readonly RunBatch[];
  /** Every batch that was given, in order, begun or not. */
  readonly given: readonly GivenRun[];
  readonly badResults: readonly string[];
  readonly goodResults: readonly string[];
  /** Brings lost executors back. */
  revive(): Promise<void>;
  /** No executor will ever run again. */
  giveUp(): void;
  /** Lets promises settle. */
  settle(): Promise<void>;
}

/** What a pool is made of. */
export interface FakePoolOptions {
  readonly executors?: number;
  readonly limits?: BatchLimits;
  /** With it every run ends by itself, in a later turn. */
  readonly answer?: (batch: RunBatch) => readonly RunRow[];
  /** How items are run; each alone, at a millisecond a token, where left out. */
  readonly shape?: BatchShape;
}

/** The row of an item depends on its ids alone. */
export const rowOf = (item: RunItem): RunRow => ({ values: Float32Array.from(item.ids), indices: null });

/** The same with a row for each head that is read beside the item's own. */
export const rowsOf = (item: RunItem): RunRow => ({
  ...rowOf(item),
  ...(item.sharedHeads === undefined ? {} : { shared: item.sharedHeads.map(() => rowOf(item)) }),
});

/** An item whose tokens are all `id`. */
export const itemOf = (id: number, tokens = 1): RunItem => ({
  ids: new Int32Array(tokens).fill(id),
  typeIds: null,
  keptRows: null,
});

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

interface FakeRun extends OpenRun {
  readonly given: GivenRun;
  resolve(result: RunResult): void;
  reject(error: Error): void;
}

interface FakeExecutor {
  readonly id: string;
  isDead: boolean;
  /** What has no answer, as the serving process sees it. */
  runs: OpenRuns<FakeRun>;
  /** What has not begun, as the executor sees it. */
  queue: RunQueue;
}

/** A pool of idle executors. */
export function createFakePool(options: FakePoolOptions = {}): FakePool {
  const { executors: count = 1, limits = { maxBatchItems: 4, maxBatchTokens: 64 }, answer } = options;
  const shape = options.shape ?? shapeOf({ kind: 'alone', limits });
  const executors = Array.from({ length: count }, (_, at): FakeExecutor => {
    return { id: `cpu:0/${at}`, isDead: false, runs: new OpenRuns(), queue: createRunQueue() };
  });
  const listeners: (() => void)[] = [];
  const pending: PendingRun[] = [];
  const batches: RunBatch[] = [];
  const given: GivenRun[] = [];
  const badResults: string[] = [];
  const goodResults: string[] = [];
  let isGivenUp = false;
  let lastRunId = 0;
  const notify = () => {
    for (const listener of listeners) listener();
  };
  const isIdle = ({ isDead, runs }: FakeExecutor) => !isDead && runs.all.length === 0;
  /** As a supervisor decides it. */
  const hasRoom = ({ isDead, runs }: FakeExecutor, { isUrgent, mayQueue }: TakeWish) => {
    if (isDead || runs.all.length === 0) return !isDead;
    return runs.countBefore(isUrgent) === 1 && (mayQueue || (isUrgent && runs.all.length > 1));
  };

  function give(executor: FakeExecutor, batch: RunBatch, isUrgent: boolean, expectedMs: number): GivenBatch {
    const { runs, queue } = executor;
    const runId = ++lastRunId;
    const skips: (readonly number[])[] = [];
    const told: GivenRun = { executorId: executor.id, batch, isUrgent, expectedMs, skips };
    given.push(told);
    const skipped = new Set<number>();
    const isFirst = runs.all.length === 0;
    const result = new Promise<RunResult>((resolve, reject) => {
      runs.add({ runId, batch, isUrgent, expectedMs, skipped, given: told, resolve, reject }, 0);
    });
    queue.add({ type: 'run', runId, isUrgent, batch });
    if (isFirst) begin(executor, queue.takeNext());
    return {
      result,
      skip(positions) {
        if (runs.find(runId) === undefined) return;
        skips.push(positions);
        for (const position of positions) skipped.add(position);
        queue.skip(runId, positions);
      },
    };
  }

  function begin(executor: FakeExecutor, next: QueuedRun | null): void {
    if (next === null) return;
    const { runId, batch } = next.question;
    const run = executor.runs.find(runId);
    if (run === undefined) throw new Error('an executor began a run that it was not given');
    const items = batch.items.filter((_, position) => !next.skipped.has(position));
    const end = (rows: readonly (RunRow | null)[], computeMs: number) => {
      goOn(executor, runId);
      run.resolve({ rows, computeMs, paddedTokens: tokensOf(items) });
      return settle();
    };
    if (items.length === 0) {
      void settle().then(() =>
        end(
          batch.items.map(() => null),
          0,
        ),
      );
      return;
    }
    batches.push({ ...batch, items });
    if (answer !== undefined) {
      void settle().then(() => end(answer(batch), 1));
      return;
    }
    pending.push(pendingRun(executor, run, next.skipped, end));
  }

  function pendingRun(
    executor: FakeExecutor,
    { runId, batch, isUrgent, reject }: FakeRun,
    skipped: ReadonlySet<number>,
    end: (rows: readonly (RunRow | null)[], computeMs: number) => Promise<void>,
  ): PendingRun {
    const leave = () => pending.splice(pending.indexOf(run), 1);
    const crash = (error: Error) => {
      leave();
      goOn(executor, runId);
      reject(error);
      return settle();
    };
    const run: PendingRun = {
      executorId: executor.id,
      batch,
      isUrgent,
      skipped,
      succeed(rows, computeMs = 1) {
        leave();
        return end(rows ?? batch.items.map((item, at) => (skipped.has(at) ? null : rowsOf(item))), computeMs);
      },
      fail(kind) {
        if (kind === 'runFailed') return crash(new RunFailure(kind, 'scripted'));
        leave();
        die(executor, runId, kind);
        return settle();
      },
      crash,
    };
    return run;
  }

  /** A run is over: the next one begins. */
  function goOn(executor: FakeExecutor, runId: number): void {
    const next = executor.queue.takeNext();
    executor.runs.finish(runId, next?.question.runId ?? null, 0);
    begin(executor, next);
  }

  function die(executor: FakeExecutor, runId: number, kind: RunFailure['kind']): void {
    const lost = executor.runs.all;
    Object.assign(executor, { isDead: true, runs: new OpenRuns(), queue: createRunQueue() });
    for (const run of lost) run.reject(new RunFailure(run.runId === runId ? kind : 'notStarted', 'scripted'));
  }

  return {
    pending,
    batches,
    given,
    badResults,
    goodResults,
    take(_, wish) {
      const executor = executors.find(isIdle) ?? executors.find((each) => hasRoom(each, wish));
      if (executor === undefined) return null;
      return {
        executorId: executor.id,
        deviceId: 'cpu:0',
        shapeOf: () => shape,
        run: (batch, expectedMs) => give(executor, batch, wish.isUrgent || wish.isDue === true, expectedMs),
      };
    },
    hasRoom: (_, wish) => executors.some((each) => hasRoom(each, wish)),
    isAlone: () => shape.isAlone,
    textMs: (_model: string, _head: Head | null, tokens: number) => shape.textMs(tokens),
    activeCount: () => executors.filter(({ isDead }) => !isDead).length,
    idleCount: () => executors.filter(isIdle).length,
    canServeLater: () => !isGivenUp,
    onChange: (listener) => listeners.push(listener),
    reportBadResult: (executorId) => badResults.push(executorId),
    reportGoodResult: (executorId) => goodResults.push(executorId),
    readiness: () => ({ isReady: !isGivenUp, reasons: isGivenUp ? ['Executor cpu:0/0 is down.'] : [] }),
    reports: () => [],
    async revive() {
      for (const executor of executors) executor.isDead = false;
      notify();
      await settle();
    },
    giveUp() {
      isGivenUp = true;
      notify();
    },
    settle,
  };
}

const tokensOf = (items: readonly RunItem[]): number => items.reduce((sum, { ids }) => sum + ids.length, 0);
