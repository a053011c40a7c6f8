/** Owns which items run together next: a pure function of what waits and of what it should take. */
import { batchMs, type BatchShape } from '../device/batch-shape.ts';
import type { Lane, RunKey } from './item.ts';
import { pickRuns } from './look-ahead.ts';
import { sharingCount } from './queue.ts';
import type { BatchBounds, BatchPick, CallQueue, Candidate, QueueView, Turn } from './view.ts';

/** Interactive batches that may overtake waiting bulk work before bulk has a turn. */
export const maxInteractiveInARow = 4;

/** What a batch of a lane may take of an executor, unless one text alone takes longer. @unit ms */
export type SliceMs = Readonly<Record<Lane, number>>;

/** Of a server: who is urgent waits for no more than that. */
export const maxSliceMs: SliceMs = { interactive: 25, bulk: 45 };

/** Of a job that has the devices for itself: nobody waits, and each batch costs a message. */
export const jobSliceMs: SliceMs = { ...maxSliceMs, bulk: 200 };

/** The call whose turn it is among those whose model has room now, or null when none has. */
export function pickTurn<Call extends CallQueue>(
  view: QueueView<Call>,
  hasRoom: (modelId: string, lane: Lane) => boolean,
): Turn<Call> | null {
  const isBulkDue = view.interactiveInARow >= maxInteractiveInARow;
  const leadOf = (lane: Lane): Turn<Call> | null => {
    const lead = view.lanes[lane].find(({ key }) => hasRoom(key.modelId, lane));
    return lead === undefined ? null : { lane, lead, isDue: lane === 'bulk' && isBulkDue };
  };
  const interactive = leadOf('interactive');
  const bulk = leadOf('bulk');
  return isBulkDue ? (bulk ?? interactive) : (interactive ?? bulk);
}

const isSameKey = (a: RunKey, b: RunKey) => a.modelId === b.modelId && a.head === b.head && a.queryRows === b.queryRows;

/** What decides how much is taken. */
export interface PickFacts {
  readonly shape: BatchShape;
  /** Executors that the work is spread over. */
  readonly activeExecutors: number;
  readonly sliceMs: SliceMs;
  readonly nowMs: number;
}

/**
 * The next batch: led by the call whose turn it is, filled by calls of the same key, so that no long call holds up a
 * short one. Never more than a fair share per executor, so that one call is spread over all of them.
 */
export function pickBatch<Call extends CallQueue>(
  view: QueueView<Call>,
  { lane, lead }: Turn<Call>,
  { shape, activeExecutors, sliceMs, nowMs }: PickFacts,
): BatchPick<Call> {
  const [first] = lead.waiting;
  if (first?.mustRunAlone === true) {
    return { lane, items: [{ call: lead, item: first }], expectedMs: batchMs(shape, [first.tokens]) };
  }
  const calls = [lead, ...view.lanes[lane].filter((call) => call !== lead)];
  const sharing = calls.filter((call) => isSameKey(call.key, lead.key));
  const waitingItems = sharing.reduce((sum, call) => sum + call.waiting.length, 0);
  const bounds: BatchBounds = {
    maxItems: Math.min(shape.limits.maxBatchItems, Math.ceil(waitingItems / Math.max(1, activeExecutors))),
    maxTokens: shape.limits.maxBatchTokens,
    maxMs: shape.isAlone ? fairShareMs(sharing, shape, activeExecutors, sliceMs[lane]) : sliceMs[lane],
  };
  const picked = shape.isAlone
    ? takeInOrder(sharing.slice(0, sharingCount(sharing)), shape, bounds)
    : pickRuns(inTurns(sharing, new Set()), { shape, bounds, nowMs });
  return { lane, ...picked };
}

/** What waits, as one executor's share of it in time where each runs for itself; `maxMs` where that is less. @unit ms */
function fairShareMs(calls: readonly CallQueue[], shape: BatchShape, executors: number, maxMs: number): number {
  const shares = Math.max(1, executors);
  let totalMs = 0;
  for (const { waiting } of calls) {
    for (const { tokens } of waiting) {
      totalMs += shape.textMs(tokens);
      if (totalMs >= maxMs * shares) return maxMs;
    }
  }
  return totalMs / shares;
}

/** The items that may share a batch, one of each call after the other, until a call is closed. */
function* inTurns<Call extends CallQueue>(
  calls: readonly Call[],
  closed: ReadonlySet<Call>,
): Generator<Candidate<Call>> {
  let left = [...calls];
  for (let at = 0; left.length > 0; at += 1) {
    left = left.filter((call) => !closed.has(call) && call.waiting[at]?.mustRunAlone === false);
    for (const call of left) {
      const item = call.waiting[at];
      if (item !== undefined) yield { call, item };
    }
  }
}

/** As many as fit, each for itself, those of a call in its order: with whom one runs changes nothing. */
function takeInOrder<Call extends CallQueue>(
  calls: readonly Call[],
  shape: BatchShape,
  { maxItems, maxTokens, maxMs }: BatchBounds,
): Omit<BatchPick<Call>, 'lane'> {
  const items: Candidate<Call>[] = [];
  const closed = new Set<Call>();
  let tokens = 0;
  let expectedMs = 0;
  for (const candidate of inTurns(calls, closed)) {
    if (items.length >= maxItems) break;
    const { call, item } = candidate;
    // As of now, not as of when it was queued: what the device learns from a run must be of the same measure.
    const textMs = shape.textMs(item.tokens);
    if (items.length > 0 && (tokens + item.tokens > maxTokens || expectedMs + textMs > maxMs)) {
      closed.add(call);
      continue;
    }
    items.push(candidate);
    tokens += item.tokens;
    expectedMs += textMs;
  }
  return { items, expectedMs };
}
