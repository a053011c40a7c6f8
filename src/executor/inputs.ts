/** Owns the input tensors of a run: buffers that are filled anew for each text instead of allocated. */
import { Tensor } from 'onnxruntime-node';
import type { RunItem } from './protocol.ts';

/** Feeds for one text at a time; what it returned is overwritten by its next call. */
export type FeedText = (item: RunItem, inputNames: readonly string[]) => Record<string, Tensor>;

/** A feeder for texts of up to `maxTokens` tokens. @shape each feed int64 [1, tokens] */
export function createTextFeeder(maxTokens: number): FeedText {
  const ids = new BigInt64Array(maxTokens);
  const typeIds = new BigInt64Array(maxTokens);
  const zeros = new BigInt64Array(maxTokens);
  const ones = new BigInt64Array(maxTokens).fill(1n);
  return (item, inputNames) => {
    const tokens = item.ids.length;
    const tensorOf = (buffer: BigInt64Array) => new Tensor('int64', buffer.subarray(0, tokens), [1, tokens]);
    const feeds: Record<string, Tensor> = {};
    for (const name of inputNames) {
      if (name === 'input_ids') feeds[name] = tensorOf(widen(item.ids, ids));
      else if (name === 'attention_mask') feeds[name] = tensorOf(ones);
      else feeds[name] = tensorOf(item.typeIds === null ? zeros : widen(item.typeIds, typeIds));
    }
    return feeds;
  };
}

function widen(source: Int32Array | Uint8Array, target: BigInt64Array): BigInt64Array {
  for (let position = 0; position < source.length; position++) target[position] = BigInt(source[position] ?? 0);
  return target;
}
