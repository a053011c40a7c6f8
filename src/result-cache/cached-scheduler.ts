/** Owns a scheduler that looks among the kept rows first: only what is not there is run, and then kept. */
import type { RunRow } from '../executor/protocol.ts';
import type { Job, JobOutcome } from '../schedule/call.ts';
import type { Admission, Scheduler } from '../schedule/scheduler.ts';
import { Pace } from './pace.ts';
import { itemLayout, jobDigest, keyOf } from './row-key.ts';
import { keptBytesOf, type RowStore } from './row-store.ts';

/** What the cache works with. */
export interface CacheParts {
  readonly store: RowStore;
  /** Everything that a model's rows follow from besides the text. */
  readonly identityOf: (modelId: string) => string;
  /** Told of every job. */
  readonly onLookUp: (found: { readonly hits: number; readonly misses: number }) => void;
}

/**
 * The scheduler with a cache before it. What is found needs no run: it is told as done at once, it counts neither as
 * queue time nor as compute time, and its place in the queue is given back with the admission.
 */
export function withResultCache(scheduler: Scheduler, parts: CacheParts): Scheduler {
  return {
    admit(modelId, load, remainingMs) {
      const admission = scheduler.admit(modelId, load, remainingMs);
      return {
        run: (job) => runMissing(admission, job, parts),
        release() {
          admission.release();
        },
      };
    },
    get gauges() {
      return scheduler.gauges;
    },
    predictedDrainMs: () => scheduler.predictedDrainMs(),
  };
}

async function runMissing(admission: Admission, job: Job, parts: CacheParts): Promise<JobOutcome> {
  const { store, identityOf, onLookUp } = parts;
  job.signal.throwIfAborted();
  const keys = await keysOf(job, identityOf(job.key.modelId));
  job.signal.throwIfAborted();
  const found = keys.map((key) => store.find(key));
  const missing = [...found.keys()].filter((index) => found[index] === undefined);
  onLookUp({ hits: found.length - missing.length, misses: missing.length });
  for (const row of found) if (row !== undefined) job.onItemDone?.();
  if (missing.length === 0) return { rows: found as RunRow[], queueMs: 0, computeMs: 0, device: null };
  const missingItems = new Set(missing);
  const outcome = await admission.run({
    ...job,
    items: job.items.filter((_, index) => missingItems.has(index)),
    fieldOf: (index) => job.fieldOf(missing[index] ?? index),
  });
  const pace = new Pace();
  for (const [position, row] of outcome.rows.entries()) {
    const index = missing[position] ?? position;
    found[index] = row;
    store.keep(keys[index] ?? '', row);
    await pace.spend(keptBytesOf(row));
  }
  return { ...outcome, rows: found as RunRow[] };
}

async function keysOf({ key, items }: Job, identity: string): Promise<string[]> {
  const common = jobDigest(identity, key);
  const pace = new Pace();
  const keys: string[] = [];
  for (const item of items) {
    const layout = itemLayout(common, item);
    keys.push(keyOf(layout));
    await pace.spend(layout.length);
  }
  return keys;
}
