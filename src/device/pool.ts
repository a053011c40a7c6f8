/** Owns the contract between the scheduler and the devices. */
import type { Head, RunBatch, RunRow } from '../executor/protocol.ts';
import type { BatchShape } from './batch-shape.ts';

/** Where an executor is in its life; `ready` takes a batch, `busy` one more. */
export type ExecutorState = 'starting' | 'warming' | 'ready' | 'busy' | 'draining' | 'dead';

/** What a finished run gave. */
export interface RunResult {
  /** One for each item, in item order; null for what was skipped before it began. */
  readonly rows: readonly (RunRow | null)[];
  /**
   * Time the executor spent in the engine.
   * @unit ms
   */
  readonly computeMs: number;
  /** Tokens that went through the graph, padding and copies included. */
  readonly paddedTokens: number;
}

/** A batch that was given to an executor. */
export interface GivenBatch {
  /** @throws RunFailure */
  readonly result: Promise<RunResult>;
  /** Nobody waits for the items at these positions any more: those that have not begun are not run. */
  readonly skip: (positions: readonly number[]) => void;
}

/**
 * Why a run gave nothing. `executorGone` and `timedOut` say nothing about the items, `runFailed` blames one of them,
 * `outOfMemory` says that they were too much together, `notStarted` that their turn had not come.
 */
export class RunFailure extends Error {
  override readonly name = 'RunFailure';
  readonly kind: 'runFailed' | 'outOfMemory' | 'executorGone' | 'timedOut' | 'notStarted';

  constructor(kind: RunFailure['kind'], reason: string) {
    super(reason);
    this.kind = kind;
  }
}

/** An executor, taken by the scheduler for exactly one batch, which is given to it in the same turn. */
export interface TakenExecutor {
  readonly executorId: string;
  readonly deviceId: string;
  /** How items of a model are run there. */
  shapeOf(modelId: string, head: Head): BatchShape;
  /** Runs one batch and gives the executor back, whatever happens. @param expectedMs what it should take */
  run(batch: RunBatch, expectedMs: number): GivenBatch;
}

/** What an executor is wanted for. */
export interface TakeWish {
  /** Before all that is not urgent, once the run of the moment is over. */
  readonly isUrgent: boolean;
  /** Whether one will do that still runs something of the same urgency. */
  readonly mayQueue: boolean;
  /** Whether what is urgent and comes later may not overtake it; absent: it may, if this is not urgent itself. */
  readonly isDue?: boolean;
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

/** One executor as the metrics show it. */
export interface ExecutorReport {
  readonly deviceId: string;
  readonly executorId: string;
  readonly state: ExecutorState;
  /** Memory of its process as it said last; null where it says nothing. @unit bytes */
  readonly residentBytes: number | null;
}

/** Whether every configured model can run now, and if not why. */
export interface Readiness {
  readonly isReady: boolean;
  readonly reasons: readonly string[];
}

/** What the scheduler and the service need of the devices. */
export interface DevicePool {
  /** Takes the executor that would finish such work soonest, or null when none has room for it. */
  take(modelId: string, wish: TakeWish): TakenExecutor | null;
  /** Whether `take` would give one. */
  hasRoom(modelId: string, wish: TakeWish): boolean;
  /** Number of executors of this model, or of all, that are ready or busy: what work is spread over. */
  activeCount(modelId?: string): number;
  /** Number of executors of this model that run nothing. */
  idleCount(modelId: string): number;
  /** Whether each text of this model has a run of its own, so that batches gain nothing by being larger. */
  isAlone(modelId: string): boolean;
  /** What a text of so many tokens takes of one executor's time, as far as is known. @unit ms */
  textMs(modelId: string, head: Head | null, tokens: number): number;
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
