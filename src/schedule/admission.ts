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
  /** Until all that waits and runs has run. @unit ms */
  readonly predictedDrainMs: number;
  /** What the call itself should take of all executors. @unit ms */
  readonly ownMs: number;
  /** Time the call may still take. @unit ms */
  readonly remainingMs: number;
}

/** Least time that a refused caller is told to wait: what is given to executors leaves them in steps of about that. @unit ms */
export const minRetryAfterMs = 200;
/** Longest time that a refused caller is told to wait. @unit ms */
export const maxRetryAfterMs = 60_000;

/**
 * Calls take turns, so one does not end when what was there before it has run, but when it has shared the executors with
 * all that came after it as well: where the queue stays full of calls of one size, half of what they ask for is left.
 */
const turnsFactor = 2;

/**
 * Part of the time left that may be planned; runs take longer than expected at times. A call that ends past its deadline
 * was work for nothing: without these two, ten times the load left 2 % of the capacity for answers.
 */
const plannedShare = 0.8;

/** A wait as a refused caller may be told it. @unit ms */
export const boundedRetryAfterMs = (waitMs: number): number =>
  Math.min(maxRetryAfterMs, Math.max(minRetryAfterMs, waitMs));

/** A limit that a call would pass. */
interface Excess {
  /** What would be how much, and the limit, in words and with units. */
  readonly why: string;
  readonly limit: number;
  readonly received: number;
  /** Until it would not pass it any more. @unit ms */
  readonly waitMs: number;
}

/** Tenths of a second, for people; an end is rounded up and a limit down, so that they never read alike. @unit ms */
const shownStepMs = 100;
const secondsOf = (steps: number): string => ((steps * shownStepMs) / 1000).toFixed(1);

/** Every limit that a call would pass beside what waits. */
function excessesOf(view: AdmissionView, incoming: Load, limits: AdmissionLimits): Excess[] {
  const { waiting, predictedDrainMs, ownMs, remainingMs } = view;
  const excesses: Excess[] = [];
  /** What waits leaves evenly while the queue drains; a call beyond the limit itself waits for all of it. */
  const count = (unit: string, limit: number, received: number, total: number) => {
    const part = Math.min(1, (received - limit) / Math.max(1, total));
    const why = `with this call ${received} ${unit} would wait, the limit is ${limit}`;
    if (received > limit) excesses.push({ why, limit, received, waitMs: predictedDrainMs * part });
  };
  const maxItems = limits.maxQueuedItems + view.idleExecutors;
  count('inputs', maxItems, waiting.items + incoming.items, waiting.items);
  count('tokens', limits.maxQueuedTokens, waiting.tokens + incoming.tokens, waiting.tokens);
  const endMs = turnsFactor * predictedDrainMs + ownMs;
  const plannedMs = plannedShare * remainingMs;
  if (endMs > plannedMs) {
    const waitMs = Math.min(predictedDrainMs, (endMs - plannedMs) / turnsFactor);
    const [end, most] = [Math.ceil(endMs / shownStepMs), Math.max(0, Math.floor(plannedMs / shownStepMs))];
    const why = `this call would end in about ${secondsOf(end)} s, the limit is ${secondsOf(most)} s`;
    excesses.push({ why, limit: plannedMs, received: endMs, waitMs });
  }
  return excesses;
}

/**
 * Returns when the call may enter, throws when not.
 * @throws overloaded with `retryAfterMs`, the time after which the same call would be let in
 */
export function checkAdmission(view: AdmissionView, incoming: Load, limits: AdmissionLimits): void {
  if (view.waiting.items === 0 || incoming.items === 0) return;
  const excesses = excessesOf(view, incoming, limits);
  const [first] = excesses;
  if (first === undefined) return;
  const waitMs = Math.max(...excesses.map((excess) => excess.waitMs));
  throw new ServiceError('overloaded', `The queue is full: ${first.why}; try again later`, {
    retryAfterMs: Math.ceil(boundedRetryAfterMs(waitMs)),
    limit: Math.round(first.limit),
    received: Math.round(first.received),
  });
}
