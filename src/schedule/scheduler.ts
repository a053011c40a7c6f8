/** Owns the scheduler contract: admit a call, run its items, give every accepted item exactly one end. */
import type { Clock } from '../clock.ts';
import type { DevicePool } from '../device/pool.ts';
import { ServiceError } from '../errors.ts';
import { checkAdmission, type AdmissionLimits, type Load } from './admission.ts';
import { jobSliceMs, maxSliceMs } from './batcher.ts';
import { ScheduledCall, type Job, type JobOutcome } from './call.ts';
import { emptyGauges, enterQueue, type ItemGauges } from './item.ts';
import { createLoop, type RunObserver } from './loop.ts';

/** A place in the queue: what was admitted may be run, in one or several jobs. */
export interface Admission {
  /**
   * Runs a job and gives its rows in item order.
   * @throws ServiceError: the reason of `job.signal`, unavailable, internal
   */
  run(job: Job): Promise<JobOutcome>;
  /** Gives back what was admitted and not run; call it in `finally`. */
  release(): void;
}

/** Where work waits for a device. */
export interface Scheduler {
  /**
   * Reserves room for a call of this model, before any costly work is done for it.
   * @throws overloaded, unavailable
   */
  admit(modelId: string, load: Load, remainingMs: number): Admission;
  /** Live counts, for metrics. */
  readonly gauges: Readonly<ItemGauges>;
  /** Time until everything that waits has run, as far as is known. @unit ms */
  predictedDrainMs(): number;
}

/** What a scheduler is made of. */
export interface SchedulerParts {
  readonly pool: DevicePool;
  readonly clock: Clock;
  readonly limits: AdmissionLimits;
  readonly observer: RunObserver;
  /** True: one job has the devices for itself; absent: callers wait for each other. */
  readonly isJob?: boolean;
  /** Calls back once everything that has arrived by now was told; tests may do so at once. */
  readonly soon?: (callback: () => void) => void;
}

/** A scheduler over a pool of executors. */
export function createScheduler(parts: SchedulerParts): Scheduler {
  const { pool, clock, limits, observer, isJob = false, soon = setImmediate } = parts;
  const gauges = emptyGauges();
  const reserved = { items: 0, tokens: 0, ms: 0 };
  const sliceMs = isJob ? jobSliceMs : maxSliceMs;
  const loop = createLoop({ pool, clock, gauges, observer, sliceMs, soon });
  const predictedDrainMs = () => (gauges.queuedMs + gauges.runningMs + reserved.ms) / Math.max(1, pool.activeCount());

  function admit(modelId: string, load: Load, remainingMs: number): Admission {
    if (load.items > 0 && !pool.canServeLater(modelId)) {
      throw new ServiceError('unavailable', 'No device can run this model', {
        detail: pool.readiness().reasons.join('; '),
      });
    }
    const waiting = { items: gauges.queuedItems + reserved.items, tokens: gauges.queuedTokens + reserved.tokens };
    const textMs = load.items === 0 ? 0 : pool.textMs(modelId, null, Math.ceil(load.tokens / load.items));
    const ownMs = (load.items * textMs) / Math.max(1, pool.activeCount(modelId));
    const idleExecutors = pool.idleCount(modelId);
    checkAdmission({ waiting, idleExecutors, predictedDrainMs: predictedDrainMs(), ownMs, remainingMs }, load, limits);
    const left = { ...load, ms: load.items * textMs };
    const giveBack = (items: number, tokens: number) => {
      const given = { items: Math.min(items, left.items), tokens: Math.min(tokens, left.tokens) };
      const ms = given.items === left.items ? left.ms : given.items * textMs;
      left.items -= given.items;
      left.tokens -= given.tokens;
      left.ms -= ms;
      reserved.items -= given.items;
      reserved.tokens -= given.tokens;
      reserved.ms = reserved.items === 0 ? 0 : reserved.ms - ms;
    };
    reserved.items += load.items;
    reserved.tokens += load.tokens;
    reserved.ms += left.ms;
    return {
      async run(job) {
        job.signal.throwIfAborted();
        const isLongestFirst = job.items.length > 1 && pool.isAlone(job.key.modelId);
        const call = new ScheduledCall(job, clock.nowMs(), textMsOf(pool, job), isLongestFirst);
        if (call.items.length === 0) return { rows: [], queueMs: 0, computeMs: 0, device: null };
        const tokens = call.items.reduce((sum, item) => sum + item.tokens, 0);
        giveBack(call.items.length, tokens);
        for (const item of call.items) enterQueue(item, gauges);
        const onAbort = () => {
          loop.cancel(call, job.signal.reason);
        };
        job.signal.addEventListener('abort', onAbort, { once: true });
        try {
          loop.enqueue(call);
          return await call.outcome;
        } finally {
          job.signal.removeEventListener('abort', onAbort);
        }
      },
      release: () => {
        giveBack(left.items, left.tokens);
      },
    };
  }
  return { admit, gauges, predictedDrainMs };
}

/** What a text of a job should take, asked once for each length. */
function textMsOf(pool: DevicePool, { key: { modelId, head } }: Job): (tokens: number) => number {
  const known = new Map<number, number>();
  return (tokens) => {
    const ms = known.get(tokens) ?? pool.textMs(modelId, head, tokens);
    known.set(tokens, ms);
    return ms;
  };
}
