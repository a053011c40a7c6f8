/** Owns one batch on its way: what goes to the executor, and who gets which of the rows that come back. */
import type { RunBatch, RunItem, RunRow, SharedHead } from '../executor/protocol.ts';
import type { ScheduledCall } from './call.ts';
import type { Item, RunKey } from './item.ts';
import type { Twin } from './twins.ts';

/** An item that was taken from the queue, with its call. */
export interface Taken {
  readonly call: ScheduledCall;
  readonly item: Item;
}

/** An item in a batch. */
export interface Entry extends Taken {
  /** Its part of the engine's time for its text; all who share the pass have the same. */
  readonly share: number;
  /** Its row of a result. */
  readonly rowOf: (rows: readonly RunRow[]) => RunRow | undefined;
}

/** Items that go through the encoder together. */
export interface Batch {
  readonly key: RunKey;
  readonly run: RunBatch;
  readonly entries: readonly Entry[];
  /** Tokens that run. */
  readonly tokens: number;
}

const sharedHeadOf = ({ key: { head }, run: { keptRows } }: Item): SharedHead => {
  if (head === 'maxSim') throw new Error('MaxSim is of one query and shares no pass');
  return { head, keptRows };
};

/** The batch of `leads`, each of which runs, and their twins, which only read another head of the same pass. */
export function batchOf(key: RunKey, leads: readonly Taken[], twins: readonly Twin<ScheduledCall>[]): Batch {
  const entries: Entry[] = [];
  const items: RunItem[] = [];
  for (const [position, lead] of leads.entries()) {
    const its = twins.filter((twin) => twin.position === position);
    const share = 1 / (its.length + 1);
    items.push(
      its.length === 0 ? lead.item.run : { ...lead.item.run, sharedHeads: its.map(({ item }) => sharedHeadOf(item)) },
    );
    entries.push({ ...lead, share, rowOf: (rows) => rows[position] });
    for (const [at, { call, item }] of its.entries()) {
      entries.push({ call, item, share, rowOf: (rows) => rows[position]?.shared?.[at] });
    }
  }
  const tokens = leads.reduce((sum, { item }) => sum + item.tokens, 0);
  return { key, run: { ...key, items }, entries, tokens };
}
