/** Owns how long a piece of work may go on: until its caller aborts it, its time is over, or a sibling fails. */
import { onAbort } from './abort.ts';
import type { ClientClock } from './clock.ts';
import { abortErrorOf } from './error.ts';

/** One piece of work; `close` must be called when it has ended. */
export interface Scope {
  /** Its reason is always an error. */
  readonly signal: AbortSignal;
  /** Time left; Infinity without a limit. @unit ms */
  remainingMs(): number;
  abort(error: Error): void;
  /** Gives back the timer and the listener. */
  close(): void;
}

/** A limit of time, and the error that says that it is over. */
export interface TimeLimit {
  /** @unit ms */
  readonly ms: number;
  readonly error: () => Error;
}

/** Opens a scope inside of another, or of a caller's signal; both may be absent. */
export function openScope(parent: AbortSignal | undefined, limit: TimeLimit | null, clock: ClientClock): Scope {
  const controller = new AbortController();
  const endMs = limit === null ? Infinity : clock.nowMs() + limit.ms;
  const follow = () => {
    if (parent !== undefined) controller.abort(abortErrorOf(parent));
  };
  let cancelTimer: () => void = () => undefined;
  let forget: () => void = () => undefined;
  if (parent?.aborted === true) follow();
  else {
    if (parent !== undefined) forget = onAbort(parent, follow);
    if (limit !== null && limit.ms <= 0) controller.abort(limit.error());
    else if (limit !== null && Number.isFinite(limit.ms)) {
      cancelTimer = clock.after(limit.ms, () => {
        controller.abort(limit.error());
      });
    }
  }
  return {
    signal: controller.signal,
    remainingMs: () => endMs - clock.nowMs(),
    abort: (error) => {
      controller.abort(error);
    },
    close() {
      cancelTimer();
      forget();
    },
  };
}

/**
 * Settles as `promise` does, or rejects at once when the signal aborts.
 * @throws the signal's reason
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = () => {
      reject(abortErrorOf(signal));
    };
    const forget = signal.aborted ? stop : onAbort(signal, stop);
    if (signal.aborted) stop();
    promise.then(resolve, reject).finally(forget);
  });
}

/**
 * Resolves after `delayMs`.
 * @throws the signal's reason, when it aborts before
 */
export async function pause(delayMs: number, signal: AbortSignal, clock: ClientClock): Promise<void> {
  let cancelTimer: () => void = () => undefined;
  const elapsed = new Promise<void>((resolve) => {
    cancelTimer = clock.after(delayMs, resolve);
  });
  try {
    await orAborted(elapsed, signal);
  } finally {
    cancelTimer();
  }
}
