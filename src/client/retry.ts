/** Owns repeating a request: which errors allow it, how long to wait before, and when to give up. */
import type { Environment } from './clock.ts';
import { abortErrorOf, errorOf, RcpError } from './error.ts';
import { pause, type Scope } from './scope.ts';

/** Bounds of repeating one request. Every method only computes, so any request may be repeated. */
export interface RetryPolicy {
  /** Times that a request is sent at most, the first included. */
  readonly maxAttempts: number;
  /** Time that one request spends waiting between its attempts at most. @unit ms */
  readonly maxWaitMs: number;
}

/** What happens unless the caller says otherwise. */
export const defaultRetryPolicy: RetryPolicy = { maxAttempts: 6, maxWaitMs: 60_000 };

/** Wait before the second attempt where the server names none; doubled each time. @unit ms */
const firstWaitMs = 100;
/** Longest wait of the client's own choice. @unit ms */
const longestWaitMs = 10_000;
/** What chance adds to a wait at most, as a part of it: callers that were refused together come back apart. */
const jitterPart = 0.25;

/** What a request needs to know of the call that it is a part of. */
export interface RetryContext {
  readonly policy: RetryPolicy;
  readonly environment: Environment;
  readonly scope: Scope;
  /** Whether an error that could be retried is given to the caller all the same. */
  readonly isFinal?: (error: RcpError) => boolean;
  readonly onRetry?: () => void;
}

/**
 * The result of the first attempt that has one. Waits `retryAfterMs` where the server says so, and never less.
 * @throws RcpError of the last attempt; deadlineExceeded where the deadline would pass while waiting; the scope's reason
 */
export async function withRetries<T>(attempt: () => Promise<T>, context: RetryContext): Promise<T> {
  const { policy, environment, scope } = context;
  let waitedMs = 0;
  for (let attempts = 1; ; attempts++) {
    if (isAborted(scope)) throw abortErrorOf(scope.signal);
    try {
      return await attempt();
    } catch (error) {
      if (isAborted(scope)) throw abortErrorOf(scope.signal);
      if (!(error instanceof RcpError) || !error.retryable || context.isFinal?.(error) === true) throw error;
      const waitMs = waitAfter(error, attempts) * (1 + jitterPart * environment.random());
      if (attempts >= policy.maxAttempts || waitedMs + waitMs > policy.maxWaitMs) throw error;
      if (waitMs >= scope.remainingMs()) {
        // It is the whole call's: nothing else of it can come in time either.
        const late = deadlineError(error);
        scope.abort(late);
        throw late;
      }
      waitedMs += waitMs;
      context.onRetry?.();
      await pause(waitMs, scope.signal, environment.clock);
    }
  }
}

const isAborted = ({ signal }: Scope) => signal.aborted;

/** What the server says, or twice as long each time. @unit ms */
function waitAfter(error: RcpError, attempts: number): number {
  const { retryAfterMs } = error.data;
  if (typeof retryAfterMs === 'number' && retryAfterMs >= 0) return retryAfterMs;
  return Math.min(longestWaitMs, firstWaitMs * 2 ** (attempts - 1));
}

/** The deadline of the caller's own, in the words of the server's. */
export const deadlineError = (cause?: unknown): RcpError =>
  errorOf('deadlineExceeded', 'The deadline passed before the answer was there', { cause });
