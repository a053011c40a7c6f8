/** Owns the batch line: whenever an executor is free and something waits, pick, run, split, settle. */
import type { Clock } from '../clock.ts';
import { RunFailure, type DevicePool, type RunResult, type TakenExecutor } from '../device/pool.ts';
import { ServiceError } from '../errors.ts';
import type { RunRow } from '../executor/protocol.ts';
import { allFinite } from '../tensor/finite.ts';
import type { DrainEstimate } from './admission.ts';
import { batchOf, type Batch, type Entry } from './batch.ts';
import { pickBatch, pickTurn, type BatchPick } from './batcher.ts';
import type { ScheduledCall } from './call.ts';
import { moveItem, type Item, type ItemGauges, type ItemState } from './item.ts';
import { WaitingQueue } from './queue.ts';
import { findTwins } from './twins.ts';

/** Runs lost to a dead or hung executor before an item is given up: one retry. */
export const maxLostRuns = 2;

/** Told of what happens, for metrics and the log. */
export interface RunObserver {
  onRun(run: { device: string; items: number; tokens: number; computeMs: number; queueMs: number }): void;
  onLostRun(run: { executorId: string; kind: RunFailure['kind']; reason: string; items: number }): void;
  onBadResult(bad: { executorId: string; modelId: string; head: string }): void;
}

/** What the loop works with. */
export interface LoopParts {
  readonly pool: DevicePool;
  readonly clock: Clock;
  readonly gauges: ItemGauges;
  readonly estimate: DrainEstimate;
  readonly observer: RunObserver;
  /** Calls back once everything that has arrived by now was told. */
  readonly soon: (callback: () => void) => void;
}

/** The running loop. */
export interface Loop {
  enqueue(call: ScheduledCall): void;
  /** Ends a call with `reason`: what waits never reaches a device, what runs is detached. */
  cancel(call: ScheduledCall, reason: unknown): void;
}

/** Starts the loop; it sleeps until there is work and an executor for it. */
export function createLoop({ pool, clock, gauges, estimate, observer, soon }: LoopParts): Loop {
  const queue = new WaitingQueue<ScheduledCall>();
  let isPumpDue = false;

  function pump(): void {
    for (;;) {
      const turn = pickTurn(queue, idleModels(pool));
      const executor = turn === null ? null : pool.take(turn.lead.key.modelId);
      if (turn === null || executor === null) return;
      const pick = pickBatch(queue, turn, executor.batchLimits, pool.activeCount(turn.lead.key.modelId));
      void runBatch(executor, takeBatch(pick)).finally(pump);
    }
  }

  /** Once what arrives together is here: calls of one array, texts of one answer of the tokenizer. */
  function pumpSoon(): void {
    if (isPumpDue) return;
    isPumpDue = true;
    soon(() => {
      isPumpDue = false;
      pump();
    });
  }

  /** Nothing waits for a model that no executor will ever run again. */
  function refuseUnservable(calls: readonly ScheduledCall[]): void {
    for (const call of calls) {
      if (pool.canServeLater(call.key.modelId)) continue;
      const detail = pool.readiness().reasons.join('; ');
      end(call, 'failed', new ServiceError('unavailable', 'No device can run this model', { detail }));
    }
  }

  /** The items of a pick, and those of other heads that the same passes answer. */
  function takeBatch(pick: BatchPick): Batch {
    const leads = queue.take(pick);
    const key = leads[0]?.call.key;
    if (key === undefined) throw new Error('a batch has at least one item');
    const twins = findTwins(
      queue,
      key,
      leads.map(({ item }) => item),
    );
    for (const { call, item } of twins) queue.takeItem(call, item, call.job.lane);
    return batchOf(key, leads, twins);
  }

  async function runBatch(executor: TakenExecutor, { entries, run, tokens }: Batch): Promise<void> {
    const startedMs = clock.nowMs();
    let queueMs = 0;
    for (const { call, item } of entries) {
      moveItem(item, 'running', gauges);
      call.started(startedMs, executor.deviceId);
      queueMs = Math.max(queueMs, startedMs - item.queuedAtMs);
    }
    let result: RunResult;
    try {
      result = await executor.run(run);
    } catch (error) {
      // Anything else is a bug of ours: it is told like a failed run, so that every item still settles.
      const failure = error instanceof RunFailure ? error : new RunFailure('runFailed', String(error));
      const { kind, message: reason } = failure;
      observer.onLostRun({ executorId: executor.executorId, kind, reason, items: entries.length });
      handleFailure(failure, entries);
      return;
    }
    const { computeMs } = result;
    estimate.observe(tokens, computeMs);
    observer.onRun({ device: executor.deviceId, items: entries.length, tokens, computeMs, queueMs });
    settleRows(executor, entries, result.rows, computeMs / Math.max(1, tokens));
  }

  function settleRows(executor: TakenExecutor, entries: readonly Entry[], rows: readonly RunRow[], msPerToken: number) {
    let hasBadRow = false;
    for (const { call, item, share, rowOf } of entries) {
      const row = rowOf(rows);
      const isGood = row !== undefined && allFinite(row.values);
      if (!isGood && !hasBadRow) {
        hasBadRow = true;
        pool.reportBadResult(executor.executorId);
        observer.onBadResult({ executorId: executor.executorId, ...call.key });
      }
      if (call.isSettled) continue;
      if (isGood) {
        moveItem(item, 'done', gauges);
        call.complete(item, row, share * item.tokens * msPerToken);
      } else {
        end(call, 'failed', failureOf(call, item, 'The model gave a value that is not a number for this input'));
      }
    }
    if (!hasBadRow) pool.reportGoodResult(executor.executorId);
  }

  /**
   * A lost executor says nothing about the items: one retry each. A failed run blames one of them, and what did not fit
   * into the memory was too much together: each runs alone, and only the one that fails alone is told so.
   */
  function handleFailure(failure: RunFailure, entries: readonly Entry[]): void {
    const isLost = failure.kind === 'executorGone' || failure.kind === 'timedOut';
    const retried = new Map<ScheduledCall, Item[]>();
    for (const { call, item } of entries) {
      if (call.isSettled) continue;
      if (isLost) item.lostRuns += 1;
      if (item.lostRuns >= maxLostRuns || (!isLost && entries.length === 1)) {
        end(call, 'failed', lastFailureOf(failure.kind, call, item));
      } else {
        item.mustRunAlone = true;
        retried.set(call, [...(retried.get(call) ?? []), item]);
      }
    }
    for (const [call, items] of retried) {
      if (call.isSettled) continue;
      for (const item of items) moveItem(item, 'queued', gauges);
      queue.putBack(call, call.job.lane, items);
    }
  }

  function lastFailureOf(kind: RunFailure['kind'], call: ScheduledCall, item: Item): ServiceError {
    if (kind === 'runFailed') return failureOf(call, item, 'The model could not run this input');
    const message =
      kind === 'outOfMemory'
        ? 'The memory of the device does not suffice for this input'
        : 'The device failed while it ran this input, twice';
    return new ServiceError('unavailable', message, { field: call.job.fieldOf(item.index) });
  }

  function failureOf(call: ScheduledCall, item: Item, message: string): ServiceError {
    const field = call.job.fieldOf(item.index);
    return new ServiceError('internal', `${field}: ${message}`, { field });
  }

  /** The one way a call ends without its rows: every item it still has is moved, then the promise settles. */
  function end(call: ScheduledCall, state: Extract<ItemState, 'failed' | 'cancelled'>, reason: unknown): void {
    if (call.isSettled) return;
    queue.remove(call, call.job.lane);
    call.waiting.length = 0;
    for (const item of call.items) {
      if (item.state === 'queued' || item.state === 'running') moveItem(item, state, gauges);
    }
    call.fail(reason);
  }

  pool.onChange(() => {
    refuseUnservable([...queue.lanes.interactive, ...queue.lanes.bulk]);
    pump();
  });
  return {
    enqueue(call) {
      queue.add(call, call.job.lane);
      refuseUnservable([call]);
      pumpSoon();
    },
    cancel(call, reason) {
      end(call, 'cancelled', reason);
    },
  };
}

/** Whether an executor of a model is idle, asked once for each model however many calls wait. */
function idleModels(pool: DevicePool): (modelId: string) => boolean {
  const known = new Map<string, boolean>();
  return (modelId) => {
    const isIdle = known.get(modelId) ?? pool.idleCount(modelId) > 0;
    known.set(modelId, isIdle);
    return isIdle;
  };
}
