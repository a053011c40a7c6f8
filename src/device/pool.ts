/** Owns the contract between the scheduler and the devices. */
import type { BatchLimits } from './budget.ts';
import type { RunBatch, RunRow } from '../executor/protocol.ts';

/** Where an executor is in its life; only `ready` takes a batch. */
export type ExecutorState = 'starting' | 'warming' | 'ready' | 'busy' | 'draining' | 'dead';

/** What a finished run gave. */
export interface RunResult {
  /** One per item, in item order. */
  readonly rows: readonly RunRow[];
  /**
   * Time the executor spent in the engine.
   * @unit ms
   */
  readonly computeMs: number;
}

/**
 * Why a run gave nothing. `executorGone` and `timedOut` say nothing about the items, `runFailed` blames one of them,
 * `outOfMemory` says that they were too much together.
 */
export class RunFailure extends Error {
  override readonly name = 'RunFailure';
  readonly kind: 'runFailed' | 'outOfMemory' | 'executorGone' | 'timedOut';

  constructor(kind: RunFailure['kind'], reason: string) {
    super(reason);
    this.kind = kind;
  }
}

/** A ready executor, taken by the scheduler for exactly one run. */
export interface TakenExecutor {
  readonly executorId: string;
  readonly deviceId: string;
  /** How large its batch may be. */
  readonly batchLimits: BatchLimits;
  /**
   * Runs one batch and gives the executor back, whatever happens.
   * @throws RunFailure
   */
  run(batch: RunBatch): Promise<RunResult>;
}

/** One device as `info` shows it. */
export interface DeviceReport {
  readonly id: string;
  readonly executionProvider: string;
  readonly name: string;
  readonly precision: string;
  readonly state: 'starting' | 'ready' | 'down';
  readonly serves: readonly string[];
}

/** Whether every configured model can run now, and if not why. */
export interface Readiness {
  readonly isReady: boolean;
  readonly reasons: readonly string[];
}

/** What the scheduler and the service need of the devices. */
export interface DevicePool {
  /** Takes the ready executor that would run this model soonest (it becomes busy), or null when none is ready. */
  take(modelId: string): TakenExecutor | null;
  /** Number of executors of this model, or of all, that are ready or busy: what work is spread over. */
  activeCount(modelId?: string): number;
  /** Number of executors that `take` would give now. */
  idleCount(modelId: string): number;
  /** False once no executor of this model is alive or will ever be started again. */
  canServeLater(modelId: string): boolean;
  /** Calls `listener` whenever an executor has proved itself, and when `canServeLater` turns false. */
  onChange(listener: () => void): void;
  /** A run of this executor gave values that are not numbers; several in a row have it replaced. */
  reportBadResult(executorId: string): void;
  /** A run of this executor gave good values. */
  reportGoodResult(executorId: string): void;
  readiness(): Readiness;
  reports(): readonly DeviceReport[];
}
