/** Owns which waiting items are answered by a run of the same text for another head: a pure function of what waits. */
import type { RunItem } from '../executor/protocol.ts';
import type { CallQueue, QueueView } from './batcher.ts';
import type { Item, RunKey } from './item.ts';

/** A waiting item that needs no run of its own. */
export interface Twin<Call extends CallQueue = CallQueue> {
  readonly call: Call;
  readonly item: Item;
  /** Position in the batch of the item whose run answers it. */
  readonly position: number;
}

/** Items that one run of a text may answer beside its own: each of them is a row to copy. */
export const maxTwinsPerItem = 8;

/** A head that is read from one pass of a text through the encoder, whoever asks. */
const isShareable = ({ head, queryRows }: RunKey): boolean => head !== 'maxSim' && queryRows === null;

const isSame = (left: Int32Array | Uint8Array | null, right: Int32Array | Uint8Array | null): boolean =>
  left === right ||
  (left !== null &&
    right !== null &&
    left.length === right.length &&
    left.every((value, position) => value === right[position]));

/** Whether two items are the same pass through the graph, whatever is read from it. */
function isSamePass(left: RunItem, right: RunItem): boolean {
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

/** Waiting items of other heads of the same model whose text is in the batch; oldest first, of either lane. */
export function findTwins<Call extends CallQueue>(
  view: { readonly lanes: Readonly<Record<keyof QueueView['lanes'], readonly Call[]>> },
  key: RunKey,
  batch: readonly Item[],
): Twin<Call>[] {
  if (!isShareable(key)) return [];
  const others = [...view.lanes.interactive, ...view.lanes.bulk].filter(
    (call) => call.key.modelId === key.modelId && call.key.head !== key.head && isShareable(call.key),
  );
  if (others.length === 0) return [];
  const positions = new Map(batch.map((item, position) => [item.fingerprint, position]));
  const counts = new Map<number, number>();
  const twins: Twin<Call>[] = [];
  for (const call of others) {
    for (const item of call.waiting) {
      const position = positions.get(item.fingerprint);
      const lead = position === undefined ? undefined : batch[position];
      if (position === undefined || lead === undefined || lead.mustRunAlone || item.mustRunAlone) continue;
      const count = counts.get(position) ?? 0;
      if (count >= maxTwinsPerItem || !isSamePass(lead.run, item.run)) continue;
      counts.set(position, count + 1);
      twins.push({ call, item, position });
    }
  }
  return twins;
}
