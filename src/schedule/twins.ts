/** Owns which waiting items are answered by a run of the same text for another head: a pure function of what waits. */
import type { RunItem } from '../executor/protocol.ts';
import type { CallQueue, Candidate, QueueView } from './view.ts';
import type { Item, RunKey } from './item.ts';

/** A waiting item that needs no run of its own. */
export interface Twin<Call extends CallQueue = CallQueue> extends Candidate<Call> {
  /** Position in the batch of the item whose run answers it. */
  readonly position: number;
  /** Whether it is given the very row of that item; else it wants another head, or other rows. */
  readonly isSameRow: boolean;
}

/** Heads that one run of a text may answer beside its own: each of them is a row to copy. */
export const maxSharedHeads = 8;

/** Whether a head is read from one pass of a text through the encoder, whoever asks. */
export const isShareable = ({ head, queryRows }: RunKey): boolean => head !== 'maxSim' && queryRows === null;

const isSame = (left: Int32Array | Uint8Array | null, right: Int32Array | Uint8Array | null): boolean =>
  left === right ||
  (left !== null &&
    right !== null &&
    left.length === right.length &&
    left.every((value, position) => value === right[position]));

/** Whether two items are the same pass through the graph, whatever is read from it. */
export function isSamePass(left: RunItem, right: RunItem): boolean {
  return (
    isSame(left.ids, right.ids) &&
    isSame(left.typeIds, right.typeIds) &&
    left.promptTokens === right.promptTokens &&
    left.attendedTokens === right.attendedTokens
  );
}

/** A number that equal texts share, and few others; what shares it is compared. @source FNV-1a */
export function fingerprint(ids: Int32Array): number {
  let hash = 0x81_1c_9d_c5;
  for (const id of ids) hash = Math.imul(hash ^ id, 0x01_00_01_93);
  return hash >>> 0;
}

/** Whether the row of one item is the row of the other, to the last bit. */
export const isSameRow = (left: Item, right: Item): boolean =>
  left.key.head === right.key.head && isSame(left.run.keptRows, right.run.keptRows);

/** Waiting items that are answered by the runs of a batch: the same text again, of whatever head; of either lane. */
export function findTwins<Call extends CallQueue>(
  { lanes }: Pick<QueueView<Call>, 'lanes'>,
  key: RunKey,
  batch: readonly Item[],
): Twin<Call>[] {
  if (!isShareable(key)) return [];
  const positions = new Map(batch.map((item, position) => [item.fingerprint, position]));
  const headCounts = new Map<number, number>();
  const twins: Twin<Call>[] = [];
  for (const call of [...lanes.interactive, ...lanes.bulk]) {
    if (call.key.modelId !== key.modelId || !isShareable(call.key)) continue;
    for (const item of call.waiting) {
      const position = positions.get(item.fingerprint);
      const lead = position === undefined ? undefined : batch[position];
      if (position === undefined || lead === undefined || lead.mustRunAlone || item.mustRunAlone) continue;
      if (!isSamePass(lead.run, item.run)) continue;
      const isSame = isSameRow(lead, item);
      const heads = headCounts.get(position) ?? 0;
      if (!isSame && heads >= maxSharedHeads) continue;
      if (!isSame) headCounts.set(position, heads + 1);
      twins.push({ call, item, position, isSameRow: isSame });
    }
  }
  return twins;
}

/** Items without those that are answered by the run of another one of them. */
export function splitTwins<Call extends CallQueue>(
  items: readonly Candidate<Call>[],
): { readonly leads: readonly Candidate<Call>[]; readonly twins: readonly Twin<Call>[] } {
  const positions = new Map<number, number>();
  const leads: Candidate<Call>[] = [];
  const twins: Twin<Call>[] = [];
  for (const { call, item } of items) {
    const position = positions.get(item.fingerprint);
    const lead = position === undefined ? undefined : leads[position]?.item;
    const isTwin =
      lead !== undefined && isShareable(item.key) && isSamePass(lead.run, item.run) && isSameRow(lead, item);
    if (position !== undefined && isTwin) {
      twins.push({ call, item, position, isSameRow: true });
    } else {
      positions.set(item.fingerprint, leads.length);
      leads.push({ call, item });
    }
  }
  return { leads, twins };
}
