/** Owns what one caller may take of the server: calls in time, and tokens in the queue. */
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import { boundedRetryAfterMs } from '../schedule/admission.ts';
import type { Load } from '../schedule/admission.ts';
import type { Scheduler } from '../schedule/scheduler.ts';

/** The bounds of one caller; 0 is none. */
export interface QuotaLimits {
  readonly requestsPerSecond: number;
  /** Calls at once after a silence; 0 is those of one second. */
  readonly requestBurst: number;
  /** Tokens that wait or run at a time; a caller who has none there may bring any number. */
  readonly queuedTokens: number;
}

/** Why a caller was refused although the server had room. */
export const quotaReasons = ['rate', 'queuedTokens'] as const;

/** One of `quotaReasons`. */
export type QuotaReason = (typeof quotaReasons)[number];

/** Tokens that a call holds. */
export interface TokenClaim {
  /** Gives back one text's part. */
  itemDone(): void;
  /** Gives back what is left; twice is harmless. */
  release(): void;
}

/** The accounts of one caller. */
export interface CallerQuota {
  /** Takes one call; null where it may be made, else the time until the next one may. @unit ms */
  takeRequest(): number | null;
  /** Takes calls that were let in with another one: an array is let in whole, and paid for by those that follow it. */
  chargeRequests(count: number): void;
  /**
   * Takes tokens; `drainMs` is the time until everything in the queue has run.
   * @throws overloaded with the time until enough of the caller's tokens should have run
   */
  claimTokens(load: Load, drainMs: () => number): TokenClaim;
  /** Changes the bounds; what was taken stays taken. */
  update(limits: QuotaLimits): void;
}

/** What accounts work with. */
export interface QuotaParts {
  readonly clock: Clock;
  readonly onRefused: (reason: QuotaReason) => void;
}

const burstOf = ({ requestBurst, requestsPerSecond }: QuotaLimits) => requestBurst || requestsPerSecond;
/** What sums of fractions may lack of a whole call. */
const epsilon = 1e-6;

/** Fresh accounts: nothing taken, the burst available. */
export function createCallerQuota(initial: QuotaLimits, { clock, onRefused }: QuotaParts): CallerQuota {
  let limits = initial;
  let available = burstOf(limits);
  let countedAtMs = clock.nowMs();
  let heldTokens = 0;

  const refill = () => {
    const nowMs = clock.nowMs();
    const gained = ((nowMs - countedAtMs) / 1000) * limits.requestsPerSecond;
    available = Math.min(burstOf(limits), available + gained);
    countedAtMs = nowMs;
  };

  return {
    takeRequest() {
      if (limits.requestsPerSecond === 0) return null;
      refill();
      if (available >= 1 - epsilon) {
        available -= 1;
        return null;
      }
      onRefused('rate');
      return Math.ceil(((1 - available) / limits.requestsPerSecond) * 1000);
    },
    chargeRequests(count) {
      if (limits.requestsPerSecond > 0) available -= count;
    },
    claimTokens({ items, tokens }, drainMs) {
      const wanted = heldTokens + tokens;
      if (limits.queuedTokens > 0 && heldTokens > 0 && wanted > limits.queuedTokens) {
        onRefused('queuedTokens');
        // A caller's tokens leave evenly while the queue drains.
        const part = Math.min(1, (wanted - limits.queuedTokens) / heldTokens);
        const why = `with this call ${wanted} tokens would wait, the limit is ${limits.queuedTokens}`;
        throw new ServiceError('overloaded', `The share of this key in the queue is full: ${why}; try again later`, {
          retryAfterMs: Math.round(boundedRetryAfterMs(drainMs() * part)),
          limit: limits.queuedTokens,
          received: wanted,
        });
      }
      heldTokens += tokens;
      let leftTokens = tokens;
      const giveBack = (count: number) => {
        const given = Math.min(leftTokens, count);
        leftTokens -= given;
        heldTokens -= given;
      };
      return {
        itemDone: () => {
          giveBack(Math.floor(tokens / Math.max(1, items)));
        },
        release: () => {
          giveBack(leftTokens);
        },
      };
    },
    update(next) {
      refill();
      const hadRate = limits.requestsPerSecond > 0;
      limits = next;
      available = hadRate ? Math.min(available, burstOf(next)) : burstOf(next);
    },
  };
}

/** The scheduler as one caller sees it: its share of the queue is judged before the queue itself. */
export function withQuota(scheduler: Scheduler, quota: CallerQuota): Scheduler {
  return {
    admit(modelId, load, remainingMs) {
      const claim = quota.claimTokens(load, () => scheduler.predictedDrainMs());
      try {
        const admission = scheduler.admit(modelId, load, remainingMs);
        return {
          run: (job) =>
            admission.run({
              ...job,
              onItemDone: () => {
                claim.itemDone();
                job.onItemDone?.();
              },
            }),
          release() {
            claim.release();
            admission.release();
          },
        };
      } catch (error) {
        claim.release();
        throw error;
      }
    },
    get gauges() {
      return scheduler.gauges;
    },
    predictedDrainMs: () => scheduler.predictedDrainMs(),
  };
}
