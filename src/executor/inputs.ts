/** Owns the input tensors of a run: buffers that are filled anew for each run instead of allocated. */
import { Tensor } from 'onnxruntime-node';
import type { PlannedRun } from './plan.ts';
import { poolingMaskInput } from './protocol.ts';
import type { ModelLoad, RunItem } from './protocol.ts';

/** Feeds for exactly the named inputs; what it returned is overwritten by its next call. */
export type FeedTexts = (
  items: readonly RunItem[],
  size: Pick<PlannedRun, 'texts' | 'tokens'>,
  model: Pick<ModelLoad, 'positionPadId'>,
  inputNames: readonly string[],
) => Record<string, Tensor>;

/** Writes one text to the start of a row that holds zeros. */
type FillRow = (row: BigInt64Array, item: RunItem, positionPadId: number | null) => void;

/** Position of each token, by the rule that `ModelLoad.positionPadId` states. */
const fillPositions: FillRow = (row, { ids }, padId) => {
  if (padId !== null) row.fill(BigInt(padId));
  let position = padId === null ? 0 : padId + 1;
  for (const [index, id] of ids.entries()) {
    if (id !== padId) row[index] = BigInt(position++);
  }
};

/** Every input that can be fed, and how. Padding is what lies behind the text: 0 but for ids and positions. */
const fillers: Readonly<Record<string, FillRow>> = {
  input_ids(row, { ids }, padId) {
    // Masked tokens may be any; for a graph that counts positions by its padding id, they must be that one.
    if (padId !== null) row.fill(BigInt(padId));
    for (const [index, id] of ids.entries()) row[index] = BigInt(id);
  },
  attention_mask(row, { ids, attendedTokens }) {
    row.fill(1n, 0, attendedTokens ?? ids.length);
  },
  token_type_ids(row, { typeIds }) {
    for (const [index, typeId] of typeIds?.entries() ?? []) row[index] = BigInt(typeId);
  },
  position_ids: fillPositions,
  [poolingMaskInput](row, { ids, promptTokens, attendedTokens }) {
    row.fill(1n, promptTokens ?? 0, attendedTokens ?? ids.length);
  },
};

/** Whether a text can be fed to an input of this name. */
export const isFedInput = (name: string): boolean => Object.hasOwn(fillers, name);

/** A feeder whose buffers are as large as the largest run so far. @shape each feed int64 [texts, tokens] */
export function createFeeder(): FeedTexts {
  const buffers = new Map<string, BigInt64Array>();
  const zeros = (name: string, length: number): BigInt64Array => {
    let buffer = buffers.get(name);
    if (buffer === undefined || buffer.length < length) buffers.set(name, (buffer = new BigInt64Array(length)));
    return buffer.subarray(0, length).fill(0n);
  };
  return (items, { texts, tokens }, { positionPadId }, inputNames) => {
    const feeds: Record<string, Tensor> = {};
    for (const name of inputNames) {
      const fill = fillers[name];
      if (fill === undefined) throw new Error(`the input ${name} cannot be fed`);
      const values = zeros(name, texts * tokens);
      for (let row = 0; row < texts; row++) {
        const item = items[row] ?? items.at(-1);
        if (item !== undefined) fill(values.subarray(row * tokens, (row + 1) * tokens), item, positionPadId);
      }
      feeds[name] = new Tensor('int64', values, [texts, tokens]);
    }
    return feeds;
  };
}
