/** Owns a device pool without devices: every run waits until the test says how it ends. */
import type { BatchLimits } from '../../../src/device/budget.ts';
import { RunFailure, type DevicePool, type RunResult } from '../../../src/device/pool.ts';
import type { RunBatch, RunItem, RunRow } from '../../../src/executor/protocol.ts';

/** A run that an executor holds. */
export interface PendingRun {
  readonly executorId: string;
  readonly batch: RunBatch;
  /** Ends it with one row per item, `rowOf` where none are given. */
  succeed(rows?: readonly RunRow[], computeMs?: number): Promise<void>;
  /** Ends it with a failure; a lost executor stays away until `revive`. */
  fail(kind: RunFailure['kind']): Promise<void>;
  /** Ends it with an error that is no RunFailure. */
  crash(error: Error): Promise<void>;
}

/** A pool with the strings to pull. */
export interface FakePool extends DevicePool {
  readonly pending: readonly PendingRun[];
  /** Every batch that reached an executor, in order. */
  readonly batches: readonly RunBatch[];
  readonly badResults: readonly string[];
  readonly goodResults: readonly string[];
  /** Brings lost executors back. */
  revive(): Promise<void>;
  /** No executor will ever run again. */
  giveUp(): void;
  /** Lets promises settle. */
  settle(): Promise<void>;
}

/** The row of an item depends on its ids alone. */
export const rowOf = (item: RunItem): RunRow => ({ values: Float32Array.from(item.ids), indices: null });

/** An item whose tokens are all `id`. */
export const itemOf = (id: number, tokens = 1): RunItem => ({
  ids: new Int32Array(tokens).fill(id),
  typeIds: null,
  keptRows: null,
});

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A pool of idle executors; with `answer` every run ends by itself, in a later turn. */
export function createFakePool(
  executors = 1,
  batchLimits: BatchLimits = { maxBatchItems: 4, maxBatchTokens: 64 },
  answer?: (batch: RunBatch) => readonly RunRow[],
): FakePool {
  const state = new Map<string, 'ready' | 'busy' | 'dead'>();
  for (let at = 0; at < executors; at += 1) state.set(`cpu:0/${at}`, 'ready');
  const listeners: (() => void)[] = [];
  const pending: PendingRun[] = [];
  const batches: RunBatch[] = [];
  const badResults: string[] = [];
  const goodResults: string[] = [];
  let isGivenUp = false;
  const notify = () => {
    for (const listener of listeners) listener();
  };
  const countOf = (...wanted: string[]) => [...state.values()].filter((each) => wanted.includes(each)).length;

  function start(executorId: string, batch: RunBatch): Promise<RunResult> {
    batches.push(batch);
    if (answer !== undefined) {
      return settle().then(() => {
        state.set(executorId, 'ready');
        return { rows: answer(batch), computeMs: 1 };
      });
    }
    return new Promise((resolve, reject) => {
      const end = (next: 'ready' | 'dead', act: () => void) => {
        pending.splice(pending.indexOf(run), 1);
        state.set(executorId, next);
        act();
        if (next === 'ready') notify();
        return settle();
      };
      const run: PendingRun = {
        executorId,
        batch,
        succeed: (rows = batch.items.map(rowOf), computeMs = 1) => end('ready', () => resolve({ rows, computeMs })),
        fail: (kind) =>
          end(kind === 'runFailed' ? 'ready' : 'dead', () => {
            reject(new RunFailure(kind, 'scripted'));
          }),
        crash: (error) =>
          end('ready', () => {
            reject(error);
          }),
      };
      pending.push(run);
    });
  }

  return {
    pending,
    batches,
    badResults,
    goodResults,
    take() {
      const executorId = [...state].find(([, each]) => each === 'ready')?.[0];
      if (executorId === undefined) return null;
      state.set(executorId, 'busy');
      return { executorId, deviceId: 'cpu:0', batchLimits, run: (batch) => start(executorId, batch) };
    },
    activeCount: () => countOf('ready', 'busy'),
    idleCount: () => countOf('ready'),
    canServeLater: () => !isGivenUp,
    onChange: (listener) => listeners.push(listener),
    reportBadResult: (executorId) => badResults.push(executorId),
    reportGoodResult: (executorId) => goodResults.push(executorId),
    readiness: () => ({ isReady: !isGivenUp, reasons: isGivenUp ? ['Executor cpu:0/0 is down.'] : [] }),
    reports: () => [],
    async revive() {
      for (const [executorId, each] of state) if (each === 'dead') state.set(executorId, 'ready');
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
