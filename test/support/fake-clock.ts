/** Owns hand-driven time for tests: nothing happens until `advance` is called. */
import type { Clock } from '../../src/clock.ts';

/** A clock whose time moves only by `advance`. */
export interface FakeClock extends Clock {
  /** Moves time forward, firing due timers in order and letting promises settle after each. */
  advance(ms: number): Promise<void>;
  /** Timers that have neither fired nor been cancelled. */
  pendingTimers(): number;
}

const settlePromises = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A fresh clock at time 0. */
export function createFakeClock(): FakeClock {
  let now = 0;
  let sequence = 0;
  const timers = new Map<number, { dueMs: number; callback: () => void }>();
  const nextDue = (untilMs: number) =>
    [...timers].filter(([, timer]) => timer.dueMs <= untilMs).sort((a, b) => a[1].dueMs - b[1].dueMs || a[0] - b[0])[0];
  return {
    nowMs: () => now,
    after(delayMs, callback) {
      const key = sequence++;
      timers.set(key, { dueMs: now + Math.max(0, delayMs), callback });
      return () => {
        timers.delete(key);
      };
    },
    async advance(ms) {
      const until = now + ms;
      await settlePromises();
      for (let due = nextDue(until); due !== undefined; due = nextDue(until)) {
        now = due[1].dueMs;
        timers.delete(due[0]);
        due[1].callback();
        await settlePromises();
      }
      now = until;
      await settlePromises();
    },
    pendingTimers: () => timers.size,
  };
}
