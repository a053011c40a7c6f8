/** Owns what waits: two lanes of calls that take turns. */
import type { BatchPick, CallQueue, Candidate, QueueView } from './view.ts';
import type { Item, Lane } from './item.ts';

/** A call whose items wait. */
export interface WaitingCall extends CallQueue {
  waiting: Item[];
}

/** The waiting calls; a call is in its lane exactly while it has waiting items. */
export class WaitingQueue<Call extends WaitingCall> implements QueueView<Call> {
  readonly lanes: Record<Lane, Call[]> = { interactive: [], bulk: [] };
  interactiveInARow = 0;

  /** True when nothing waits. */
  get isEmpty(): boolean {
    return this.lanes.interactive.length === 0 && this.lanes.bulk.length === 0;
  }

  /** Puts a call with waiting items at the end of its lane. */
  add(call: Call, lane: Lane): void {
    this.lanes[lane].push(call);
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

  /** Carries out a pick: its calls go to the end of their lane. */
  take({ lane, items }: BatchPick<Call>): void {
    const hadBulkWaiting = this.lanes.bulk.length > 0;
    this.interactiveInARow = lane === 'interactive' && hadBulkWaiting ? this.interactiveInARow + 1 : 0;
    this.takeItems(items);
    for (const call of new Set(items.map((each) => each.call))) {
      if (call.waiting.length === 0) continue;
      this.remove(call, lane);
      this.lanes[lane].push(call);
    }
  }
}
