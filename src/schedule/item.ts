/** Owns one unit of work: its states, the one function that moves it between them, and the gauges that follow. */
import type { Head, Matrix, RunItem } from '../executor/protocol.ts';

/** Who goes first: a person who waits, or a bulk job. */
export type Lane = 'interactive' | 'bulk';

/** `queued -> running -> done | failed`, `running -> queued` for the one retry, `queued -> cancelled | failed`. */
export type ItemState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';

/** What items must share to run together. */
export interface RunKey {
  readonly modelId: string;
  readonly head: Head;
  readonly queryRows: Matrix | null;
}

/** One text on its way through the queue. */
export interface Item {
  readonly key: RunKey;
  readonly run: RunItem;
  readonly tokens: number;
  /** What it should take of one executor's time. @unit ms */
  readonly expectedMs: number;
  /** Same for equal texts. */
  readonly fingerprint: number;
  /** Position in its call. */
  readonly index: number;
  readonly queuedAtMs: number;
  state: ItemState;
  /** Runs that ended without an answer because their executor was lost. */
  lostRuns: number;
  /** Times that its executor was lost before its turn had come. */
  lostStarts: number;
  /** True once a run it was part of failed: it runs by itself, so that only the culprit fails. */
  mustRunAlone: boolean;
}

/** Counts by state that change only together with a state. */
export interface ItemGauges {
  queuedItems: number;
  queuedTokens: number;
  /** What all that is queued should take of one executor's time. @unit ms */
  queuedMs: number;
  runningItems: number;
  /** The same for what has been given to executors. @unit ms */
  runningMs: number;
}

/** Gauges of an empty queue. */
export const emptyGauges = (): ItemGauges => ({
  queuedItems: 0,
  queuedTokens: 0,
  queuedMs: 0,
  runningItems: 0,
  runningMs: 0,
});

const legalMoves: Readonly<Record<ItemState, readonly ItemState[]>> = {
  queued: ['running', 'cancelled', 'failed'],
  running: ['done', 'failed', 'queued', 'cancelled'],
  done: [],
  failed: [],
  cancelled: [],
};

/** Moves an item; an illegal move is a bug and throws. */
export function moveItem(item: Item, next: ItemState, gauges: ItemGauges): void {
  if (!legalMoves[item.state].includes(next)) throw new Error(`item cannot move from ${item.state} to ${next}`);
  count(item, gauges, -1);
  item.state = next;
  count(item, gauges, 1);
}

/** Counts a new item as queued. */
export function enterQueue(item: Item, gauges: ItemGauges): void {
  count(item, gauges, 1);
}

function count(item: Item, gauges: ItemGauges, sign: 1 | -1): void {
  if (item.state === 'queued') {
    gauges.queuedItems += sign;
    gauges.queuedTokens += sign * item.tokens;
    // Sums of fractions drift away from zero, where counts do not.
    gauges.queuedMs = gauges.queuedItems === 0 ? 0 : gauges.queuedMs + sign * item.expectedMs;
  } else if (item.state === 'running') {
    gauges.runningItems += sign;
    gauges.runningMs = gauges.runningItems === 0 ? 0 : gauges.runningMs + sign * item.expectedMs;
  }
}
