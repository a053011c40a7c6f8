/** Owns the batch line: whenever an executor has room and something waits, pick, run, split, settle. */
import type { Clock } from '../clock.ts';
import { batchMs, type BatchShape } from '../device/batch-shape.ts';
import { RunFailure, type DevicePool, type RunResult, type TakenExecutor, type TakeWish } from '../device/pool.ts';
import { ServiceError } from '../errors.ts';
import type { EndedRun } from '../telemetry/record.ts';
import { allFinite } from '../tensor/finite.ts';
import { Batch, requestIdsOf, rowOf, type Entry } from './batch.ts';
import { pickBatch, pickTurn, type SliceMs } from './batcher.ts';
import type { ScheduledCall } from './call.ts';
import { moveItem, type Item, type ItemGauges, type ItemState, type Lane } from './item.ts';
import { WaitingQueue } from './queue.ts';
import { findTwins, splitTwins } from './twins.ts';
import type { BatchPick } from './view.ts';

/** Runs lost to a dead or hung executor before an item is given up: one retry. */
export const maxLostRuns = 2;
/** Times that an item may lose its executor before its turn had come; no fault of its own, and yet an end. */
export const maxLostStarts = 8;

/** Told of what happens, for metrics and the log. */
export interface RunObserver {
  onRun(run: EndedRun): void;
  /** `requestIds` name those whose texts were in it, so many as a line of a log may name. */
  onLostRun(run: {
    executorId: string;
    kind: RunFailure['kind'];
    reason: string;
    items: number;
    requestIds: readonly string[];
  }): void;
  onBadResult(bad: { executorId: string; modelId: string; head: string; requestIds: readonly string[] }): void;
}

/** What the loop works with. */
export interface LoopParts {
  readonly pool: DevicePool;
  readonly clock: Clock;
  readonly gauges: ItemGauges;
  readonly observer: RunObserver;
  readonly sliceMs: SliceMs;
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
export function createLoop({ pool, clock, gauges, observer, sliceMs, soon }: LoopParts): Loop {
  const queue = new WaitingQueue<ScheduledCall>();
  /** Batches that executors have. */
  const given = new Set<Batch>();
  /** When each executor ended its last run: what was given to it before begins then. */
  const lastEndMs = new Map<string, number>();
  let isPumpDue = false;

  /**
   * One will do that is busy, where even so nothing else would be idle. All that waits counts, of whatever lane and
   * model: who alone could not queue would never find an executor that others keep from being idle. Where texts run
   * better together, what would be a small batch had better wait for company: 16 callers of one text each had two
   * thirds of the speed on a GPU without this.
   */
  function mayQueue(modelId: string): boolean {
    const executors = pool.activeCount(modelId);
    if (gauges.queuedItems <= executors) return false;
    return gauges.queuedMs > sliceMs.interactive * executors || pool.isAlone(modelId);
  }

  const wishOf = (modelId: string, lane: Lane): TakeWish => ({
    isUrgent: lane === 'interactive',
    mayQueue: mayQueue(modelId),
  });

  function pump(): void {
    for (;;) {
      const turn = pickTurn(queue, roomNow());
      if (turn === null) return;
      const { modelId, head } = turn.lead.key;
      const executor = pool.take(modelId, { ...wishOf(modelId, turn.lane), isDue: turn.isDue });
      if (executor === null) return;
      const shape = executor.shapeOf(modelId, head);
      const facts = { shape, activeExecutors: pool.activeCount(modelId), sliceMs, nowMs: clock.nowMs() };
      void runBatch(executor, takeBatch(pickBatch(queue, turn, facts), shape)).finally(pump);
    }
  }

  /** Whether an executor of a model has room, asked once for each model and lane however many calls wait. */
  function roomNow(): (modelId: string, lane: Lane) => boolean {
    const known = { interactive: new Map<string, boolean>(), bulk: new Map<string, boolean>() };
    return (modelId, lane) => {
      const hasRoom = known[lane].get(modelId) ?? pool.hasRoom(modelId, wishOf(modelId, lane));
      known[lane].set(modelId, hasRoom);
      return hasRoom;
    };
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

  /** The items of a pick, and all that the same runs answer. */
  function takeBatch(pick: BatchPick<ScheduledCall>, shape: BatchShape): Batch {
    queue.take(pick);
    const { leads, twins } = splitTwins(pick.items);
    const [first] = leads;
    if (first === undefined) throw new Error('a batch has at least one item');
    const items = leads.map(({ item }) => item);
    const waiting = findTwins(queue, first.item.key, items);
    queue.takeItems(waiting);
    const lengths = items.map(({ tokens }) => tokens);
    const expectedMs = twins.length === 0 ? pick.expectedMs : batchMs(shape, lengths);
    return new Batch({ items: leads, expectedMs }, [...twins, ...waiting]);
  }

  async function runBatch(executor: TakenExecutor, batch: Batch): Promise<void> {
    const givenMs = clock.nowMs();
    const { run, expectedMs } = batch;
    const oldestMs = Math.min(...batch.entries.map(({ item }) => item.queuedAtMs));
    for (const { item } of batch.entries) moveItem(item, 'running', gauges);
    given.add(batch);
    let result: RunResult;
    try {
      const onItsWay = executor.run(run, expectedMs);
      batch.give(onItsWay);
      result = await onItsWay.result;
    } catch (error) {
      // Anything else is a bug of ours: it is told like a failed run, so that every item still settles.
      const failure = error instanceof RunFailure ? error : new RunFailure('runFailed', String(error));
      const { kind, message: reason } = failure;
      given.delete(batch);
      lastEndMs.set(executor.executorId, clock.nowMs());
      const requestIds = requestIdsOf(batch.entries);
      observer.onLostRun({ executorId: executor.executorId, kind, reason, items: batch.entries.length, requestIds });
      handleFailure(failure, batch.entries);
      return;
    }
    given.delete(batch);
    const tokens = batch.tokensOf(result);
    const { computeMs, paddedTokens } = result;
    const items = batch.entries.filter(({ position }) => result.rows[position] !== null).length;
    const beganMs = Math.max(givenMs, lastEndMs.get(executor.executorId) ?? givenMs);
    lastEndMs.set(executor.executorId, clock.nowMs());
    if (items > 0) {
      const facts = { device: executor.deviceId, items, tokens, paddedTokens };
      observer.onRun({ ...facts, computeMs, expectedMs, queueMs: beganMs - oldestMs });
    }
    for (const { call } of batch.entries) call.started(beganMs, executor.deviceId);
    settleRows(executor, batch, result, computeMs / Math.max(1, tokens));
  }

  function settleRows(executor: TakenExecutor, batch: Batch, { rows }: RunResult, msPerToken: number) {
    const sharers = batch.sharers();
    let hasBadRow = false;
    for (const entry of batch.entries) {
      const { call, item, position } = entry;
      // It was skipped, because whoever waited for it has gone.
      if (rows[position] === null && call.isSettled) continue;
      const row = rowOf(entry, rows);
      const isGood = row !== undefined && allFinite(row.values);
      if (!isGood && !hasBadRow) {
        hasBadRow = true;
        pool.reportBadResult(executor.executorId);
        const { modelId, head } = call.key;
        const requestIds = requestIdsOf([entry]);
        observer.onBadResult({ executorId: executor.executorId, modelId, head, requestIds });
      }
      if (call.isSettled) continue;
      if (isGood) {
        moveItem(item, 'done', gauges);
        call.complete(item, row, (item.tokens * msPerToken) / (sharers[position] ?? 1));
      } else {
        end(call, 'failed', failureOf(call, item, 'The model gave a value that is not a number for this input'));
      }
    }
    if (!hasBadRow && rows.some((row) => row !== null)) pool.reportGoodResult(executor.executorId);
  }

  /**
   * A lost executor says nothing about the items: one retry each. A failed run blames one of them, and what did not fit
   * into the memory was too much together: each runs alone, and only the one that fails alone is told so.
   */
  function handleFailure({ kind }: RunFailure, entries: readonly Entry[]): void {
    const isLost = kind === 'executorGone' || kind === 'timedOut';
    const retried = new Map<ScheduledCall, Item[]>();
    for (const { call, item } of entries) {
      if (call.isSettled) continue;
      if (isLost) item.lostRuns += 1;
      if (kind === 'notStarted') item.lostStarts += 1;
      const isBlamed = (kind === 'runFailed' || kind === 'outOfMemory') && entries.length === 1;
      if (isBlamed || item.lostRuns >= maxLostRuns || item.lostStarts >= maxLostStarts) {
        end(call, 'failed', lastFailureOf(kind, call, item));
      } else {
        if (kind !== 'notStarted') item.mustRunAlone = true;
        retried.set(call, [...(retried.get(call) ?? []), item]);
      }
    }
    for (const [call, items] of retried) {
      if (call.isSettled) continue;
      for (const item of items) moveItem(item, 'queued', gauges);
      queue.putBack(call, call.job.lane, items);
    }
    // The pool may have said that this was the last executor before the failure was heard here.
    refuseUnservable([...retried.keys()]);
  }

  function lastFailureOf(kind: RunFailure['kind'], call: ScheduledCall, item: Item): ServiceError {
    if (kind === 'runFailed') return failureOf(call, item, 'The model could not run this input');
    const message =
      kind === 'outOfMemory'
        ? 'The memory of the device does not suffice for this input'
        : kind === 'notStarted'
          ? 'The device failed again and again before the turn of this input'
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
    for (const batch of given) if (batch.entries.some((entry) => entry.call === call)) batch.skipEnded();
  }

  /** Items whose text is on its way already wait for that run. */
  function joinRuns(call: ScheduledCall): void {
    const joined: { call: ScheduledCall; item: Item }[] = [];
    for (const item of call.waiting) {
      for (const batch of given) {
        if (!batch.join(call, item)) continue;
        joined.push({ call, item });
        moveItem(item, 'running', gauges);
        break;
      }
    }
    queue.takeItems(joined);
  }

  pool.onChange(() => {
    refuseUnservable([...queue.lanes.interactive, ...queue.lanes.bulk]);
    pump();
  });
  return {
    enqueue(call) {
      queue.add(call, call.job.lane);
      refuseUnservable([call]);
      joinRuns(call);
      pumpSoon();
    },
    cancel(call, reason) {
      end(call, 'cancelled', reason);
    },
  };
}
