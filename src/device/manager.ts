/** Owns the device: its executor slots, which of them runs next, and what is said about them. */
import type { RunBatch } from '../executor/protocol.ts';
import { createBatchBudget } from './budget.ts';
import type { BatchLimits } from './budget.ts';
import { RunFailure } from './pool.ts';
import type { DeviceReport, ExecutorState, Readiness, RunResult, TakenExecutor } from './pool.ts';
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
  /** The ready executor that ran last, made busy, or null. */
  take(): TakenExecutor | null;
  /** Measured speed; null before the first run. @unit tokens per ms */
  tokensPerMs(): number | null;
  activeCount(): number;
  idleCount(): number;
  /** False once no executor is alive or will ever be started again. */
  canServeLater(): boolean;
  onChange(listener: () => void): void;
  reportBadResult(executorId: string): void;
  reportGoodResult(executorId: string): void;
  readiness(): Readiness;
  report(): DeviceReport;
  /** Starts every executor; resolves when each has proved itself or is given up. */
  start(): Promise<{ readonly failures: readonly StartFailure[] }>;
  /** Ends every executor, killing those that do not end by themselves in time. */
  stop(): Promise<void>;
}

/** Weight of the newest run in the moving average of the speed. */
const newestWeight = 0.1;

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
  let tokensPerMs: number | null = null;

  function observeRun(batch: RunBatch, computeMs: number): void {
    budget.observeGoodRun();
    if (computeMs <= 0) return;
    const speed = tokensOf(batch) / computeMs;
    tokensPerMs = tokensPerMs === null ? speed : tokensPerMs + newestWeight * (speed - tokensPerMs);
  }

  async function runOn(run: (batch: RunBatch) => Promise<RunResult>, batch: RunBatch): Promise<RunResult> {
    try {
      const result = await run(batch);
      observeRun(batch, result.computeMs);
      return result;
    } catch (error) {
      if (error instanceof RunFailure && error.kind === 'outOfMemory') budget.shrink(tokensOf(batch));
      throw error;
    }
  }

  return {
    deviceId: options.deviceId,
    take() {
      const slot = warmest(slots);
      if (slot === null) return null;
      const run = slot.take();
      const { executorId } = slot;
      const { deviceId } = options;
      return { executorId, deviceId, batchLimits: budget.limits(), run: (batch) => runOn(run, batch) };
    },
    tokensPerMs: () => tokensPerMs,
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

/** The one that ran last: its caches are still warm, which is worth 1.2 of 3.8 ms to a short query on an idle machine. */
function warmest(slots: readonly Supervisor[]): Supervisor | null {
  let best: Supervisor | null = null;
  for (const slot of slots) {
    if (slot.state() !== 'ready') continue;
    if (best === null || slot.readySinceMs() > best.readySinceMs()) best = slot;
  }
  return best;
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
