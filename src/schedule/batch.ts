/** Owns one batch on its way: what goes to the executor, and who gets which of the rows that come back. */
import type { GivenBatch, RunResult } from '../device/pool.ts';
import type { RunBatch, RunItem, RunRow, SharedHead } from '../executor/protocol.ts';
import type { BatchPick, Candidate } from './view.ts';
import type { ScheduledCall } from './call.ts';
import type { Item, RunKey } from './item.ts';
import { isSamePass, isSameRow, isShareable, type Twin } from './twins.ts';

/** An item that waits for a row of a batch. */
export interface Entry extends Candidate<ScheduledCall> {
  /** Position in the batch of the item whose run answers it. */
  readonly position: number;
  /** Which of the rows that are read beside the item's own; null: its own. */
  readonly sharedAt: number | null;
}

const sharedHeadOf = ({ key: { head }, run: { keptRows } }: Item): SharedHead => {
  if (head === 'maxSim') throw new Error('MaxSim is of one query and shares no pass');
  return { head, keptRows };
};

/** Items that go through the encoder together, from the moment they are picked to the moment they are settled. */
export class Batch {
  readonly key: RunKey;
  readonly expectedMs: number;
  readonly run: RunBatch;
  readonly #leads: readonly Item[];
  readonly #positions: ReadonlyMap<number, number>;
  readonly #entries: Entry[];
  readonly #skipped = new Set<number>();
  #given: GivenBatch | null = null;

  /** The batch of `leads`, each of which runs, and their twins, which are answered by the same runs. */
  constructor(
    { items: leads, expectedMs }: Pick<BatchPick<ScheduledCall>, 'items' | 'expectedMs'>,
    twins: readonly Twin<ScheduledCall>[],
  ) {
    const [first] = leads;
    if (first === undefined) throw new Error('a batch has at least one item');
    this.key = first.item.key;
    this.expectedMs = expectedMs;
    this.#leads = leads.map(({ item }) => item);
    this.#positions = new Map(this.#leads.map((item, position) => [item.fingerprint, position]));
    this.#entries = leads.map((lead, position) => ({ ...lead, position, sharedAt: null }));
    const heads = this.#leads.map((): SharedHead[] => []);
    for (const { call, item, position, isSameRow: isOwn } of twins) {
      const sharedAt = isOwn ? null : (heads[position]?.push(sharedHeadOf(item)) ?? 0) - 1;
      this.#entries.push({ call, item, position, sharedAt });
    }
    const items = this.#leads.map((item, position): RunItem => {
      const sharedHeads = heads[position] ?? [];
      return sharedHeads.length === 0 ? item.run : { ...item.run, sharedHeads };
    });
    this.run = { ...this.key, items };
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** Hands it over; from now on what nobody waits for can be taken back. */
  give(given: GivenBatch): void {
    this.#given = given;
  }

  /** Answers an item of a later call by a run that is under way, where it is the same text and the same head. */
  join(call: ScheduledCall, item: Item): boolean {
    const position = this.#positions.get(item.fingerprint);
    const lead = position === undefined ? undefined : this.#leads[position];
    if (position === undefined || lead === undefined || this.#skipped.has(position)) return false;
    if (item.key.modelId !== this.key.modelId || !isShareable(item.key) || !isShareable(this.key)) return false;
    if (lead.mustRunAlone || !isSamePass(lead.run, item.run) || !isSameRow(lead, item)) return false;
    this.#entries.push({ call, item, position, sharedAt: null });
    return true;
  }

  /** Takes back what only calls that have ended were waiting for, unless it has begun. */
  skipEnded(): void {
    const wanted = new Set(this.#entries.flatMap(({ call, position }) => (call.isSettled ? [] : [position])));
    const ended = [...this.#leads.keys()].filter((position) => !wanted.has(position) && !this.#skipped.has(position));
    if (ended.length === 0) return;
    for (const position of ended) this.#skipped.add(position);
    this.#given?.skip(ended);
  }

  /** Number of entries that share the run of each position. */
  sharers(): readonly number[] {
    const counts = this.#leads.map(() => 0);
    for (const { position } of this.#entries) counts[position] = (counts[position] ?? 0) + 1;
    return counts;
  }

  /** Real tokens of the items that ran. */
  tokensOf({ rows }: RunResult): number {
    return this.#leads.reduce((sum, { tokens }, position) => sum + (rows[position] ? tokens : 0), 0);
  }
}

/** The row of an entry; undefined where the executor gave none. */
export function rowOf({ position, sharedAt }: Entry, rows: RunResult['rows']): RunRow | undefined {
  const row = rows[position] ?? undefined;
  return sharedAt === null ? row : row?.shared?.[sharedAt];
}

/** Most requests that are named where a batch is lost. */
const maxNamedRequests = 8;

/** The requests that entries belong to, so many as a line of a log may name. */
export function requestIdsOf(entries: readonly Entry[]): readonly string[] {
  const ids = new Set(entries.flatMap(({ call: { job } }) => (job.requestId === undefined ? [] : [job.requestId])));
  return [...ids].slice(0, maxNamedRequests);
}
