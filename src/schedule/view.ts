/** Owns what is seen of the queue where a batch is chosen, and what the choice is. */
import type { Item, Lane, RunKey } from './item.ts';

/** The waiting items of one call, oldest first. */
export interface CallQueue {
  readonly key: RunKey;
  readonly waiting: readonly Item[];
}

/** What waits, lane by lane, calls in the order of their turn. */
export interface QueueView<Call extends CallQueue = CallQueue> {
  readonly lanes: Readonly<Record<Lane, readonly Call[]>>;
  /** Batches taken from the interactive lane in a row while bulk work waited. */
  readonly interactiveInARow: number;
}

/** A waiting item with its call. */
export interface Candidate<Call extends CallQueue = CallQueue> {
  readonly call: Call;
  readonly item: Item;
}

/** What runs together next. */
export interface BatchPick<Call extends CallQueue = CallQueue> {
  readonly lane: Lane;
  readonly items: readonly Candidate<Call>[];
  /** What it should take. @unit ms */
  readonly expectedMs: number;
}

/** Whose turn it is. */
export interface Turn<Call extends CallQueue = CallQueue> {
  readonly lane: Lane;
  readonly lead: Call;
  /** Whether it was overtaken often enough: what comes later does not overtake it. */
  readonly isDue: boolean;
}

/** What bounds a batch. */
export interface BatchBounds {
  readonly maxItems: number;
  readonly maxTokens: number;
  /** @unit ms */
  readonly maxMs: number;
}
