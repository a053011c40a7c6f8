/** Owns the time that the whole check may take, and the part of it that a row gets. */

/** A time that ends. */
export interface TimeBudget {
  /** Never below 0. @unit ms */
  remainingMs(): number;
  /** A part that ends after `ms`, and never later than the whole. */
  part(ms: number): TimeBudget;
}

/** A budget that starts now. */
export function createBudget(totalMs: number, nowMs: () => number = () => performance.now()): TimeBudget {
  return endingAt(nowMs() + totalMs, nowMs);
}

function endingAt(endMs: number, nowMs: () => number): TimeBudget {
  return {
    remainingMs: () => Math.max(0, endMs - nowMs()),
    part: (ms) => endingAt(Math.min(endMs, nowMs() + ms), nowMs),
  };
}

/** A row took longer than its bound. */
export class OutOfTime extends Error {
  override readonly name = 'OutOfTime';
}

/**
 * What the work gives, where it gives it in time; what comes later is dropped.
 * @throws OutOfTime
 */
export async function within<Value>(budget: TimeBudget, work: Promise<Value>): Promise<Value> {
  const limitMs = budget.remainingMs();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new OutOfTime(`not done within ${(limitMs / 1000).toFixed(0)} s`)), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Items that were asked for, and whether these are all. */
export interface Progress {
  readonly done: number;
  readonly isComplete: boolean;
}

/**
 * Asks for the items from the first on, in slices that double, and stops before a slice that would not be done in time
 * by the pace of the one before: a slow device does the first few, a fast one all.
 */
export async function inGrowingSlices<Item>(
  items: readonly Item[],
  weightOf: (item: Item) => number,
  budget: TimeBudget,
  ask: (slice: readonly Item[]) => Promise<void>,
): Promise<Progress> {
  let done = 0;
  let msPerWeight: number | null = null;
  const weigh = (slice: readonly Item[]) => slice.reduce((sum, item) => sum + weightOf(item), 0);
  for (let size = 1; done < items.length;) {
    const slice = items.slice(done, done + size);
    const beforeMs = budget.remainingMs();
    if (beforeMs === 0 || (msPerWeight !== null && msPerWeight * weigh(slice) > beforeMs)) {
      if (size === 1) break;
      size = Math.floor(size / 2);
      continue;
    }
    await ask(slice);
    msPerWeight = (beforeMs - budget.remainingMs()) / Math.max(1, weigh(slice));
    done += slice.length;
    size *= 2;
  }
  return { done, isComplete: done === items.length };
}
