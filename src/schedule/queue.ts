/** Owns what waits: two lanes of calls that take turns. */
import type { BatchPick, CallQueue, QueueView } from './batcher.ts';
import type { Item, Lane } from './item.ts';

/** A call whose items wait. */
export interface WaitingCall extends CallQueue {
  readonly waiting: Item[];
}

/** The waiting calls; a call is in its lane exactly while it has waiting items. */
export class WaitingQueue<Call extends WaitingCall> implements QueueView {
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

  /** Takes one waiting item out of the middle of its call. */
  takeItem(call: Call, item: Item, lane: Lane): void {
    const position = call.waiting.indexOf(item);
    if (position === -1) throw new Error('only what waits can be taken');
    call.waiting.splice(position, 1);
    if (call.waiting.length === 0) this.remove(call, lane);
  }

  /** Carries out a pick: the items, each with its call. The lead goes to the end of its lane. */
  take(pick: BatchPick): { call: Call; item: Item }[] {
    const hadBulkWaiting = this.lanes.bulk.length > 0;
    this.interactiveInARow = pick.lane === 'interactive' && hadBulkWaiting ? this.interactiveInARow + 1 : 0;
    const taken: { call: Call; item: Item }[] = [];
    for (const call of [...this.lanes[pick.lane]]) {
      const count = pick.take.get(call) ?? 0;
      if (count === 0) continue;
      for (const item of call.waiting.splice(0, count)) taken.push({ call, item });
      this.remove(call, pick.lane);
      if (call.waiting.length > 0) this.lanes[pick.lane].push(call);
    }
    return taken;
  }
}
