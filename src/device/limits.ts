/** Owns the bounds of everything that a device is waited for. */

/** Every time and count that bounds an executor's life. */
export interface DeviceLimits {
  /** From the launch to `loaded`. @unit ms */
  readonly loadTimeoutMs: number;
  /** One run, a proof run too. @unit ms */
  readonly runTimeoutMs: number;
  /** From the request to stop to the end of the process. @unit ms */
  readonly stopTimeoutMs: number;
  /** An executor that nobody used for so long proves itself again. @unit ms */
  readonly reproveIdleMs: number;
  /** Runs in a row with values that are not finite, after which an executor is replaced. */
  readonly maxConsecutiveBadResults: number;
  /** Longest pause before the first restart. @unit ms */
  readonly restartBaseMs: number;
  /** Longest pause before any restart. @unit ms */
  readonly restartMaxMs: number;
  /** An executor that was ready for so long starts again with the shortest pause. @unit ms */
  readonly stableAfterMs: number;
  /** The same after so many runs that gave a result. */
  readonly stableAfterRuns: number;
  /** Memory above which an executor is replaced between two runs; 0: by what it needed to prove itself. @unit bytes */
  readonly maxExecutorBytes: number;
  /** How often a process's memory is looked at. @unit ms */
  readonly memoryPollMs: number;
}

/** Bounds that suit models of a few hundred megabytes on a CPU. */
export const defaultDeviceLimits: DeviceLimits = {
  loadTimeoutMs: 120_000,
  runTimeoutMs: 30_000,
  stopTimeoutMs: 5_000,
  reproveIdleMs: 30_000,
  maxConsecutiveBadResults: 3,
  restartBaseMs: 250,
  restartMaxMs: 5_000,
  stableAfterMs: 10_000,
  stableAfterRuns: 32,
  maxExecutorBytes: 0,
  memoryPollMs: 1_000,
};

/**
 * Pause before the next restart: doubles with each failure up to its cap, of which at least half is kept,
 * so that several executors that died together do not come back together.
 * @unit ms
 */
export function restartDelayMs(
  consecutiveFailures: number,
  limits: Pick<DeviceLimits, 'restartBaseMs' | 'restartMaxMs'>,
  random: () => number,
): number {
  const longestMs = Math.min(limits.restartMaxMs, limits.restartBaseMs * 2 ** consecutiveFailures);
  return longestMs * (0.5 + random() / 2);
}
