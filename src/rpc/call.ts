/** Owns the life of one call in flight: one signal that cancel, deadline and a vanished caller all abort. */
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { FrameContext } from './service.ts';

/** A call in flight. */
export interface OpenCall {
  /** Aborts with a ServiceError as its reason. */
  readonly signal: AbortSignal;
  /** @unit ms */
  readonly remainingMs: () => number;
  /** Gives back the deadline timer and the registration; call it in `finally`. */
  close(): void;
}

/** Opens a call that a cancel with its id finds, and that ends by itself at its deadline. */
export function openCall(options: {
  rawId: string;
  context: Pick<FrameContext, 'session' | 'signal'>;
  clock: Clock;
  deadlineMs: number;
}): OpenCall {
  const { rawId, context, clock, deadlineMs } = options;
  const controller = new AbortController();
  const endsAtMs = clock.nowMs() + deadlineMs;
  const expire = () => {
    controller.abort(new ServiceError('deadlineExceeded', `The deadline of ${Math.max(0, deadlineMs)} ms passed`));
  };
  const leave = () => {
    controller.abort(new ServiceError('cancelled', 'The connection ended before the answer'));
  };
  if (deadlineMs <= 0) expire();
  const cancelTimer = deadlineMs > 0 ? clock.after(deadlineMs, expire) : () => undefined;
  const unregister = context.session.register(rawId, controller);
  if (context.signal.aborted) leave();
  context.signal.addEventListener('abort', leave, { once: true });
  return {
    signal: controller.signal,
    remainingMs: () => endsAtMs - clock.nowMs(),
    close() {
      cancelTimer();
      unregister();
      context.signal.removeEventListener('abort', leave);
    },
  };
}
