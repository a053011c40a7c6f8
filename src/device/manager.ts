/** Owns the device: its executor slots, which of them runs next, and what is said about them. */
import type { Head, RunBatch } from '../executor/protocol.ts';
import { batchShape, Drift } from './batch-shape.ts';
import type { BatchShape } from './batch-shape.ts';
import { createBatchBudget } from './budget.ts';
import type { BatchLimits } from './budget.ts';
import type { RunCost } from './cost-model.ts';
import { RunFailure } from './pool.ts';
import type {
  DeviceReport,
  ExecutorReport,
  ExecutorState,
  GivenBatch,
  Readiness,
  RunResult,
  TakenExecutor,
  TakeWish,
} from './pool.ts';
import { createSupervisor } from './supervisor.ts';
import type { SlotSettings, Supervisor } from './slot.ts';

/** What a device is made of. */
export interface DeviceManagerOptions extends SlotSettings {
  /** Such as `cpu:0`. */
  readonly deviceId: string;
  readonly deviceName: string;
  /** Label of the precision in the report. */
  readonly precision: string;
  /** Capabilities that the device serves. */
  readonly serves: readonly string[];
  /** Number of executors, each with `threads` threads. */
  readonly executors: number;
  /** How large a batch may be at most. */
  readonly batchLimits: BatchLimits;
  /** What a run takes as it was timed; null where it was not. */
  readonly costOf: (modelId: string, head: Head) => RunCost | null;
}

/** An executor that could take a batch. */
export interface Offer {
  /** Time until the batch would begin. @unit ms */
  readonly waitMs: number;
  take(): TakenExecutor;
}

/** An executor that was given up before it was ever ready. */
export interface StartFailure {
  readonly deviceId: string;
  readonly executorId: string;
  readonly reason: string;
}

/** One device: its executors all have the same models on the same provider. */
export interface DeviceManager {
  readonly deviceId: string;
  /** The executor that would begin soonest, of idle ones the one that ran last; null where that has no room. */
  offer(wish: TakeWish): Offer | null;
  /** Time until that one would begin, with room or without; Infinity where none can run. @unit ms */
  waitMs(isUrgent: boolean): number;
  /** How items of a model are run; for no head in particular, for the first it has. */
  shapeOf(modelId: string, head: Head | null): BatchShape;
  activeCount(): number;
  idleCount(): number;
  /** False once no executor is alive or will ever be started again. */
  canServeLater(): boolean;
  onChange(listener: () => void): void;
  reportBadResult(executorId: string): void;
  reportGoodResult(executorId: string): void;
  readiness(): Readiness;
  report(): DeviceReport;
  executorReports(): readonly ExecutorReport[];
  /** Starts every executor; resolves when each has proved itself or is given up. */
  start(): Promise<{ readonly failures: readonly StartFailure[] }>;
  /** Ends every executor, killing those that do not end by themselves in time. */
  stop(): Promise<void>;
}

const isActive = (slot: Supervisor): boolean => slot.state() === 'ready' || slot.state() === 'busy';

/** A device with `executors` slots, none of them started. */
export function createDeviceManager(options: DeviceManagerOptions): DeviceManager {
  const listeners: (() => void)[] = [];
  const notify = () => {
    for (const listener of listeners) listener();
  };
  const owner = {
    onChange: notify,
    // One at a time, so that the others go on; a lone one has nobody to go on for it.
    canSpare: (executorId: string) =>
      slots.length === 1 || slots.some((slot) => slot.executorId !== executorId && isActive(slot)),
  };
  const slots: Supervisor[] = Array.from({ length: options.executors }, (_, index) =>
    createSupervisor(`${options.deviceId}/${index}`, options, owner),
  );
  const budget = createBatchBudget(options.batchLimits);
  const drifts = new Map<string, Drift>();

  /** What is not timed, or was timed badly, says nothing of the other heads. */
  function driftOf(modelId: string, head: Head): Drift {
    const key = `${head} ${modelId}`;
    let drift = drifts.get(key);
    if (drift === undefined) drifts.set(key, (drift = new Drift()));
    return drift;
  }

  function shapeOf(modelId: string, wanted: Head | null): BatchShape {
    const load = options.models.find((model) => model.modelId === modelId);
    const head = wanted ?? load?.heads[0];
    if (load === undefined || head === undefined) throw new Error(`${options.deviceId} has no model ${modelId}`);
    const { costOf, provider } = options;
    const facts = { load, head, provider: provider.name, limits: budget.limits() };
    return batchShape({ ...facts, cost: costOf(modelId, head), drift: driftOf(modelId, head).factor });
  }

  async function resultOf(given: GivenBatch, batch: RunBatch, fittedMs: number): Promise<RunResult> {
    try {
      const result = await given.result;
      budget.observeGoodRun();
      // What was skipped in part says nothing about what the whole takes.
      if (!result.rows.includes(null)) driftOf(batch.modelId, batch.head).observe(result.computeMs, fittedMs);
      return result;
    } catch (error) {
      if (error instanceof RunFailure && error.kind === 'outOfMemory') budget.shrink(tokensOf(batch));
      throw error;
    }
  }

  function take(slot: Supervisor, isUrgent: boolean): TakenExecutor {
    const run = slot.take();
    return {
      executorId: slot.executorId,
      deviceId: options.deviceId,
      shapeOf,
      run(batch, expectedMs) {
        const fittedMs = expectedMs / driftOf(batch.modelId, batch.head).factor;
        const given = run(batch, { isUrgent, expectedMs });
        return { result: resultOf(given, batch, fittedMs), skip: given.skip };
      },
    };
  }

  return {
    deviceId: options.deviceId,
    offer(wish) {
      const slot = soonest(slots, wish.isUrgent);
      // Where it has none the work waits, lest it lie behind a long run when others have nothing left to do.
      if (slot?.hasRoom(wish) !== true) return null;
      return {
        waitMs: slot.backlogMs(wish.isUrgent),
        take: () => take(slot, wish.isUrgent || wish.isDue === true),
      };
    },
    waitMs: (isUrgent) => soonest(slots, isUrgent)?.backlogMs(isUrgent) ?? Infinity,
    shapeOf,
    activeCount: () => slots.filter(isActive).length,
    idleCount: () => slots.filter((slot) => slot.state() === 'ready').length,
    canServeLater: () => slots.some((slot) => !slot.isGivenUp()),
    onChange(listener) {
      listeners.push(listener);
    },
    readiness() {
      const isReady = slots.some(isActive);
      return { isReady, reasons: isReady ? [] : slots.map(sentenceOn) };
    },
    report: () => reportOf(options, slots),
    executorReports: () =>
      slots.map((slot) => ({
        deviceId: options.deviceId,
        executorId: slot.executorId,
        state: slot.state(),
        residentBytes: slot.residentBytes(),
      })),
    async start() {
      const failures = await Promise.all(
        slots.map(async (slot) => {
          const failure = await slot.start();
          return failure === null ? [] : [{ deviceId: options.deviceId, executorId: slot.executorId, reason: failure }];
        }),
      );
      // What others of the device can do is no fault of the configuration: whoever died goes on trying.
      if (slots.some(isActive)) for (const slot of slots) slot.revive();
      return { failures: failures.flat() };
    },
    async stop() {
      await Promise.all(slots.map((slot) => slot.stop()));
    },
    reportBadResult(executorId) {
      slots.find((slot) => slot.executorId === executorId)?.reportBadResult();
    },
    reportGoodResult(executorId) {
      slots.find((slot) => slot.executorId === executorId)?.reportGoodResult();
    },
  };
}

const tokensOf = (batch: RunBatch): number => batch.items.reduce((sum, { ids }) => sum + ids.length, 0);

/**
 * The one that would begin soonest. Of idle ones the one that ran last: its caches are still warm, which is worth 1.2 of
 * 3.8 ms to a short query on an idle machine.
 */
function soonest(slots: readonly Supervisor[], isUrgent: boolean): Supervisor | null {
  let best: Supervisor | null = null;
  for (const slot of slots) {
    if (isActive(slot) && (best === null || isSooner(slot, best, isUrgent))) best = slot;
  }
  return best;
}

/** What is busy may seem to be done now, but only what is idle surely is. */
function isSooner(slot: Supervisor, other: Supervisor, isUrgent: boolean): boolean {
  const isIdle = slot.state() === 'ready';
  if (isIdle !== (other.state() === 'ready')) return isIdle;
  const laterMs = slot.backlogMs(isUrgent) - other.backlogMs(isUrgent);
  return laterMs === 0 ? slot.readySinceMs() > other.readySinceMs() : laterMs < 0;
}

function reportOf(options: DeviceManagerOptions, slots: readonly Supervisor[]): DeviceReport {
  const { deviceId, deviceName, precision, serves, provider } = options;
  const said = slots.map((slot) => slot.executionProvider()).find((name) => name !== null);
  return {
    id: deviceId,
    executionProvider: said ?? provider.name,
    name: deviceName,
    precision,
    state: reportedState(slots),
    serves,
  };
}

/** `down` only where something has failed: a slot that was never launched is about to start. */
function reportedState(slots: readonly Supervisor[]): DeviceReport['state'] {
  if (slots.some(isActive)) return 'ready';
  return slots.some((slot) => !slot.isGivenUp() && slot.downReason() === null) ? 'starting' : 'down';
}

const activity: Readonly<Record<ExecutorState, string>> = {
  starting: 'is loading its models',
  warming: 'is proving itself',
  ready: 'is ready',
  busy: 'is running',
  draining: 'is ending',
  dead: 'is down',
};

function sentenceOn(slot: Supervisor): string {
  const reason = slot.downReason();
  return `Executor ${slot.executorId} ${activity[slot.state()]}${reason === null ? '' : `, because ${reason}`}.`;
}
