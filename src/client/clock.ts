/** Owns time as the client waits for it, so that tests drive it. */

/** A source of time whose timers keep the process alive: somebody waits for the call. */
export interface ClientClock {
  /** @unit ms */
  nowMs(): number;
  /** Calls `callback` once after `delayMs`; what it gives back cancels that. */
  after(delayMs: number, callback: () => void): () => void;
}

/** What a client takes from the machine it runs on. */
export interface Environment {
  readonly clock: ClientClock;
  /** From 0 to 1, for waits that should not end together. */
  random(): number;
}

/** Longest delay that timers know; a longer one would fire at once. @unit ms */
const maxDelayMs = 2_147_483_647;

/** The machine's own time and chance. */
export const systemEnvironment: Environment = {
  clock: {
    nowMs: () => performance.now(),
    after(delayMs, callback) {
      const timer = setTimeout(callback, Math.min(delayMs, maxDelayMs));
      return () => {
        clearTimeout(timer);
      };
    },
  },
  random: Math.random,
};
