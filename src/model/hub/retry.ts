/** Owns trying again: when, how often, and how long to wait between. */
import { systemClock } from '../../clock.ts';
import type { Clock } from '../../clock.ts';
import { givenUp, HubFault } from './fault.ts';
import { hubLimits } from './limits.ts';
import type { HubLimits } from './limits.ts';

/** What waiting needs; tests bring their own. */
export interface Pacing {
  readonly clock: Clock;
  /** A number from 0 up to 1. */
  readonly random: () => number;
  readonly limits: HubLimits;
}

/** The machine's clock, real chance, the bounds in use. */
export const systemPacing: Pacing = { clock: systemClock, random: Math.random, limits: hubLimits };

/** Longest time a Node.js timer can hold. @unit ms */
const longestTimerMs = 2_147_483_647;

/** Resolves after `delayMs`. The clock's timers let a process end; one that waits for a download must not. */
export function wait(clock: Clock, delayMs: number): Promise<void> {
  const keptAlive = setInterval(() => undefined, longestTimerMs);
  return new Promise<void>((resolve) => clock.after(delayMs, resolve)).finally(() => {
    clearInterval(keptAlive);
  });
}

/**
 * The pause after `failures` failures in a row: doubling, capped, the upper half of it by chance, so that many
 * clients do not come back together.
 * @unit ms
 */
export function backoffMs(failures: number, limits: HubLimits, random: () => number): number {
  const ceiling = Math.min(limits.maxBackoffMs, limits.firstBackoffMs * 2 ** (failures - 1));
  return Math.round(ceiling * (0.5 + random() / 2));
}

/** What one try reports while it runs: whether it brought enough to start counting anew. */
export interface Attempt {
  hasProgressed: boolean;
}

/**
 * What the first try that succeeds gives.
 * @throws ConfigurationError after a fault that stays, or too many in a row
 */
export async function withRetries<Result>(
  what: string,
  { clock, random, limits }: Pacing,
  onNote: (message: string) => void,
  run: (attempt: Attempt) => Promise<Result>,
): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    const attempt: Attempt = { hasProgressed: false };
    try {
      return await run(attempt);
    } catch (error) {
      if (!(error instanceof HubFault)) throw error;
      if (attempt.hasProgressed) failures = 1;
      const pauseMs = Math.max(error.retryAfterMs ?? 0, backoffMs(failures, limits, random));
      const isOver = failures >= limits.maxAttempts || pauseMs > Math.max(limits.maxRetryAfterMs, limits.maxBackoffMs);
      if (!error.isRetryable || isOver) throw givenUp(what, error, failures);
      onNote(`${what}: ${error.message}; next try in ${(pauseMs / 1000).toFixed(1)} s`);
      await wait(clock, pauseMs);
    }
  }
}
