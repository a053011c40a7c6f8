/** Owns the decision who may enter the queue. */
import { ServiceError } from '../errors.ts';

/** Bounds of the queue; an empty queue admits one call of any size that the protocol limits allow. */
export interface AdmissionLimits {
  readonly maxQueuedItems: number;
  readonly maxQueuedTokens: number;
}

/** Work that waits or wants to. */
export interface Load {
  readonly items: number;
  readonly tokens: number;
}

/** What the decision depends on. */
export interface AdmissionView {
  /** Queued and reserved, not running. */
  readonly waiting: Load;
  /** Executors that would start an item at once. */
  readonly idleExecutors: number;
  /** @unit ms */
  readonly predictedDrainMs: number;
  /** Time the call may still take. @unit ms */
  readonly remainingMs: number;
}

/** Least time that a refused caller is told to wait. @unit ms */
export const minRetryAfterMs = 50;
/** Longest time that a refused caller is told to wait. @unit ms */
export const maxRetryAfterMs = 60_000;

/**
 * Returns when the call may enter, throws when not.
 * @throws overloaded with `retryAfterMs`, the time after which the queue should be empty
 */
export function checkAdmission(view: AdmissionView, incoming: Load, limits: AdmissionLimits): void {
  const isEmpty = view.waiting.items === 0;
  if (isEmpty || incoming.items === 0) return;
  const items = view.waiting.items + incoming.items;
  const tokens = view.waiting.tokens + incoming.tokens;
  const refuse = (why: string, limit: number, received: number) =>
    new ServiceError('overloaded', `The queue is full (${why}); try again later`, {
      retryAfterMs: Math.round(Math.min(maxRetryAfterMs, Math.max(minRetryAfterMs, view.predictedDrainMs))),
      limit,
      received,
    });
  const maxItems = limits.maxQueuedItems + view.idleExecutors;
  if (items > maxItems) throw refuse('inputs', maxItems, items);
  if (tokens > limits.maxQueuedTokens) throw refuse('tokens', limits.maxQueuedTokens, tokens);
  if (view.predictedDrainMs > view.remainingMs) {
    throw refuse('milliseconds until its turn', Math.round(view.remainingMs), Math.round(view.predictedDrainMs));
  }
}
