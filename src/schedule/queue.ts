/** Owns what waits: two lanes of calls that take turns. */
import type { BatchPick, CallQueue, Candidate, QueueView } from './view.ts';
import type { Item, Lane } from './item.ts';

/** A call whose items wait. */
export interface WaitingCall extends CallQueue {
  waiting: Item[];
}

/** Calls that take turns at least, however many items they have. */
const minSharingCalls = 8;
/** Items that the calls that take turns have together at least, where there are as many. */
const minSharingItems = 64;

/**
 * How many calls at the front of a lane take turns. What is behind waits until one of them is done: where all took turns
 * all would end late, and under overload nearly all of them past their deadlines.
 */
export function sharingCount(calls: readonly CallQueue[]): number {
  let items = 0;
  let count = 0;
  while (count < calls.length && (count < minSharingCalls || items < minSharingItems)) {
    items += calls[count]?.waiting.length ?? 0;
    count += 1;
  }
  return count;
}

/** Shorter calls that may come before one that waits for its turns; then no more, lest it waits for ever. */
export const maxOvertakings = 16;

/** The waiting calls; a call is in its lane exactly while it has waiting items. */
export class WaitingQueue<Call extends WaitingCall> implements QueueView<Call> {
  readonly lanes: Record<Lane, Call[]> = { interactive: [], bulk: [] };
  interactiveInARow = 0;
  readonly #overtakings = new WeakMap<Call, number>();

  /** True when nothing waits. */
  get isEmpty(): boolean {
    return this.lanes.interactive.length === 0 && this.lanes.bulk.length === 0;
  }

  /** Puts a call with waiting items into its lane: behind those that take turns, before longer ones that do not yet. */
  add(call: Call, lane: Lane): void {
    const calls = this.lanes[lane];
    const first = sharingCount(calls);
    let at = calls.length;
    for (let before = calls[at - 1]; at > first && before !== undefined; before = calls[at - 1]) {
      const overtakings = this.#overtakings.get(before) ?? 0;
      if (before.waiting.length <= call.waiting.length || overtakings >= maxOvertakings) break;
      this.#overtakings.set(before, overtakings + 1);
      at -= 1;
    }
    calls.splice(at, 0, call);
  }

  /** Puts items of a call back at its head; the call has the next turn. */
  putBack(call: Call, lane: Lane, items: readonly Item[]): void {
    call.waiting.unshift(...items);
    this.remove(call, lane);
    this.lanes[lane].unshift(call);
  }

  /** Takes a call out; its waiting items are the caller's to settle. */
  remove(call: Call, lane: Lane): void {
    const position = this.lanes[lane].indexOf(call);
    if (position !== -1) this.lanes[lane].splice(position, 1);
  }

  /** Takes waiting items, of either lane; calls that have none left leave it. */
  takeItems(taken: readonly Candidate<Call>[]): void {
    const items = new Set(taken.map(({ item }) => item));
    for (const call of new Set(taken.map((each) => each.call))) {
      call.waiting = call.waiting.filter((item) => !items.has(item));
      if (call.waiting.length > 0) continue;
      this.remove(call, 'interactive');
      this.remove(call, 'bulk');
    }
  }

  /** Carries out a pick: its calls go behind the others that take turns. */
  take({ lane, items }: BatchPick<Call>): void {
    const hadBulkWaiting = this.lanes.bulk.length > 0;
    this.interactiveInARow = lane === 'interactive' && hadBulkWaiting ? this.interactiveInARow + 1 : 0;
    this.takeItems(items);
    for (const call of new Set(items.map((each) => each.call))) {
      if (call.waiting.length === 0) continue;
      const sharing = sharingCount(this.lanes[lane]);
      this.remove(call, lane);
      this.lanes[lane].splice(Math.max(0, sharing - 1), 0, call);
    }
  }
}
