/** Owns the life of one call in flight: one signal that cancel, deadline and a vanished caller all abort. */
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';

/** A call in flight. */
export interface OpenCall {
  /** Aborts with a ServiceError as its reason. */
  readonly signal: AbortSignal;
  /** @unit ms */
  readonly remainingMs: () => number;
  /** Gives back the deadline timer and the registration; call it in `finally`. */
  close(): void;
}

/** Opens a call that ends by itself at its deadline. */
export function openCall(options: {
  /** Aborts when the caller is gone, or with a ServiceError that says what else has ended the call. */
  callerSignal: AbortSignal;
  clock: Clock;
  deadlineMs: number;
  /** Lets a cancel find the call, until the returned function is called; null where nothing can cancel it. */
  register: ((controller: AbortController) => () => void) | null;
}): OpenCall {
  const { callerSignal, clock, deadlineMs, register } = options;
  const controller = new AbortController();
  const endsAtMs = clock.nowMs() + deadlineMs;
  const expire = () => {
    controller.abort(new ServiceError('deadlineExceeded', `The deadline of ${Math.max(0, deadlineMs)} ms passed`));
  };
  const leave = () => {
    const { reason } = callerSignal as { readonly reason: unknown };
    const isTold = reason instanceof ServiceError;
    controller.abort(isTold ? reason : new ServiceError('cancelled', 'The connection ended before the answer'));
  };
  if (deadlineMs <= 0) expire();
  const cancelTimer = deadlineMs > 0 ? clock.after(deadlineMs, expire) : () => undefined;
  const unregister = register?.(controller) ?? (() => undefined);
  if (callerSignal.aborted) leave();
  callerSignal.addEventListener('abort', leave, { once: true });
  return {
    signal: controller.signal,
    remainingMs: () => endsAtMs - clock.nowMs(),
    close() {
      cancelTimer();
      unregister();
      callerSignal.removeEventListener('abort', leave);
    },
  };
}
