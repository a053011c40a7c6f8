/** Owns which items run together next: a pure function of what waits. */
import type { BatchLimits } from '../device/budget.ts';
import type { Item, Lane, RunKey } from './item.ts';

/** The waiting items of one call, oldest first. */
export interface CallQueue {
  readonly key: RunKey;
  readonly waiting: readonly Item[];
}

/** What waits, lane by lane, calls in the order of their turn. */
export interface QueueView {
  readonly lanes: Readonly<Record<Lane, readonly CallQueue[]>>;
  /** Batches taken from the interactive lane in a row while bulk work waited. */
  readonly interactiveInARow: number;
}

/** How many items to take from the head of which calls. */
export interface BatchPick {
  readonly lane: Lane;
  readonly take: ReadonlyMap<CallQueue, number>;
}

/** Interactive batches that may overtake waiting bulk work before bulk has a turn. */
export const maxInteractiveInARow = 4;

/** Whose turn it is. */
export interface Turn {
  readonly lane: Lane;
  readonly lead: CallQueue;
}

/** The call whose turn it is among those whose model can run now, or null when none can. */
export function pickTurn(view: QueueView, canRun: (modelId: string) => boolean): Turn | null {
  const leadOf = (lane: Lane): Turn | null => {
    const lead = view.lanes[lane].find(({ key }) => canRun(key.modelId));
    return lead === undefined ? null : { lane, lead };
  };
  const interactive = leadOf('interactive');
  const bulk = leadOf('bulk');
  if (interactive === null || bulk === null) return interactive ?? bulk;
  return view.interactiveInARow >= maxInteractiveInARow ? bulk : interactive;
}

const isSameKey = (a: RunKey, b: RunKey) => a.modelId === b.modelId && a.head === b.head && a.queryRows === b.queryRows;

/**
 * The next batch: led by the call whose turn it is, filled in turns by calls of the same key, so that no long call
 * holds up a short one. Never more than a fair share per executor, so that one call is spread over all of them.
 */
export function pickBatch(
  view: QueueView,
  { lane, lead }: Turn,
  limits: BatchLimits,
  activeExecutors: number,
): BatchPick {
  if (lead.waiting[0]?.mustRunAlone === true) return { lane, take: new Map([[lead, 1]]) };

  const calls = [lead, ...view.lanes[lane].filter((call) => call !== lead)];
  const sharing = calls.filter((call) => isSameKey(call.key, lead.key));
  const waitingItems = sharing.reduce((sum, call) => sum + call.waiting.length, 0);
  const maxItems = Math.min(limits.maxBatchItems, Math.ceil(waitingItems / Math.max(1, activeExecutors)));
  const take = new Map<CallQueue, number>();
  let items = 0;
  let tokens = 0;
  for (let hasTaken = true; hasTaken && items < maxItems;) {
    hasTaken = false;
    for (const call of sharing) {
      const taken = take.get(call) ?? 0;
      const item = call.waiting[taken];
      if (item === undefined || item.mustRunAlone || items >= maxItems) continue;
      if (items > 0 && tokens + item.tokens > limits.maxBatchTokens) continue;
      take.set(call, taken + 1);
      items += 1;
      tokens += item.tokens;
      hasTaken = true;
    }
  }
  return { lane, take };
}
