/** Owns turns: one holder at a time, the others wait in line or leave it. */
import { ServiceError } from '../errors.ts';

/** Gives the turn back; calling it twice is harmless. */
export type GiveBack = () => void;

/** A line of which one is served at a time. */
export interface Turns {
  /**
   * Resolves when it is the caller's turn.
   * @throws overloaded where too many wait; the signal's reason where it aborts first
   */
  take(signal?: AbortSignal): Promise<GiveBack>;
}

/** How long a caller is told to wait where the line is full; a very long text takes seconds. */
const fullLineRetryAfterMs = 2_000;

/** An empty line in which at most `maxWaiting` wait. */
export function createTurns(maxWaiting: number): Turns {
  const waiting = new Set<() => void>();
  let isTaken = false;

  const turn = (): GiveBack => {
    isTaken = true;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      isTaken = false;
      const [next] = waiting;
      next?.();
    };
  };

  return {
    async take(signal) {
      signal?.throwIfAborted();
      if (!isTaken) return turn();
      if (waiting.size >= maxWaiting) {
        throw new ServiceError('overloaded', 'too many very long texts wait to be tokenised', {
          retryAfterMs: fullLineRetryAfterMs,
        });
      }
      return new Promise<GiveBack>((resolve, reject) => {
        const leave = () => {
          waiting.delete(enter);
          signal?.removeEventListener('abort', abort);
        };
        const enter = () => {
          leave();
          resolve(turn());
        };
        const abort = () => {
          leave();
          reject(signal?.reason as Error);
        };
        waiting.add(enter);
        signal?.addEventListener('abort', abort, { once: true });
      });
    },
  };
}
