/** Owns the contract of one executor slot: what it is made of, what it tells, what its device may ask of it. */
import type { Clock } from '../clock.ts';
import type { HeadTimings, RunBatch } from '../executor/protocol.ts';
import type { LaunchExecutor } from './channel.ts';
import type { DeviceLimits } from './limits.ts';
import type { ReadResidentBytes } from './memory.ts';
import type { RunOptions } from './open-runs.ts';
import type { ExecutorState, GivenBatch, TakeWish } from './pool.ts';
import type { WarmUpSettings } from './warm-up.ts';

/** What the log and the metrics are told; each is called once for each event. */
export interface DeviceObserver {
  /** The executor moved; the only place where a gauge of states may change. */
  onMoved(executorId: string, from: ExecutorState, to: ExecutorState): void;
  /** The executor has proved itself for the first time in this life. @unit ms */
  onProved(executorId: string, pid: number | null, loadMs: number, proofMs: number): void;
  /** The executor is dead; `restartInMs` is null where it is not started again. */
  onDied(executorId: string, reason: string, restartInMs: number | null): void;
}

/** What every slot of a device shares. */
export interface SlotSettings extends WarmUpSettings {
  readonly launch: LaunchExecutor;
  readonly clock: Clock;
  readonly residentBytesOf: ReadResidentBytes;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly limits: DeviceLimits;
  readonly observer: DeviceObserver;
  /** What an executor has timed while it was loaded. */
  readonly onTimings: (timings: readonly HeadTimings[]) => void;
}

/** One slot as the manager sees it. */
export interface Supervisor {
  readonly executorId: string;
  /** Launches the executor; null once it has proved itself, or why it is given up. Never rejects. */
  start(): Promise<string | null>;
  /** Starts one that was given up after all, since others of its device have proved that it can be done. */
  revive(): void;
  /** Ends the executor for good; resolves when it is gone, which is bounded. */
  stop(): Promise<void>;
  /** Whether it may be given a run: it has none, or not too many that would come before. */
  hasRoom(wish: TakeWish): boolean;
  /** Time until a run that is given now would begin. @unit ms */
  backlogMs(isUrgent: boolean): number;
  /** Makes the executor busy; what it gives back runs one batch. */
  take(): (batch: RunBatch, options: RunOptions) => GivenBatch;
  /** A run gave values that are not finite. */
  reportBadResult(): void;
  /** A run gave good values: what was bad before is forgiven. */
  reportGoodResult(): void;
  state(): ExecutorState;
  /** When it became ready last. @unit ms */
  readySinceMs(): number;
  /** True once it will never run again. */
  isGivenUp(): boolean;
  /** Why it cannot run now; null where it can, or has not failed yet. */
  downReason(): string | null;
  /** What the executor said it runs on; null until one has loaded. */
  executionProvider(): string | null;
  /** Memory of its process as it said last; null while it is dead, or has said nothing. @unit bytes */
  residentBytes(): number | null;
}

/** What a slot tells its device, and asks it. */
export interface SlotOwner {
  /** The slot has proved itself, or is given up. */
  onChange(): void;
  /** Whether the device can do without the slot while it is replaced. */
  canSpare(executorId: string): boolean;
}
