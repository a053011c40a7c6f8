/** Owns time: everything that waits asks a Clock, so that tests drive it. */

/** What a pending timer gives back: calling it cancels the timer, twice is harmless. */
export type CancelTimer = () => void;

/** A source of time. `systemClock` in production, a hand-driven one in tests. */
export interface Clock {
  /**
   * Milliseconds since an arbitrary start; never goes backwards.
   * @unit ms
   */
  nowMs(): number;
  /** Calls `callback` once after `delayMs`; the timer never keeps the process alive. */
  after(delayMs: number, callback: () => void): CancelTimer;
}

/** The machine's monotonic clock. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
};
