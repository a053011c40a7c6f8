import { describe, expect, it } from 'vitest';
import { createFeeder, isFedInput } from '../../../src/executor/inputs.ts';
import { poolingMaskInput } from '../../../src/executor/protocol.ts';
import type { RunItem } from '../../../src/executor/protocol.ts';

const names = ['input_ids', 'attention_mask', 'token_type_ids', 'position_ids', poolingMaskInput];
const short: RunItem = {
  ids: Int32Array.of(5, 1, 7),
  typeIds: Uint8Array.of(0, 1, 1),
  keptRows: null,
  promptTokens: 2,
};
const long: RunItem = { ids: Int32Array.of(9, 8, 7, 6), typeIds: null, keptRows: null, attendedTokens: 3 };

/** The rows of each feed as plain numbers. */
function feed(items: readonly RunItem[], texts: number, tokens: number, positionPadId: number | null, inputs = names) {
  const feeds = createFeeder()(items, { texts, tokens }, { positionPadId }, inputs);
  return Object.fromEntries(
    Object.entries(feeds).map(([name, { data, dims }]) => {
      expect(dims).toEqual([texts, tokens]);
      const values = Array.from(data as BigInt64Array, Number);
      return [name, Array.from({ length: texts }, (_, row) => values.slice(row * tokens, (row + 1) * tokens))];
    }),
  );
}

describe('the feeds of a run', () => {
  it('pad on the right, and the masks say what is padding, not attended or prompt', () => {
    expect(feed([short, long], 2, 5, null)).toEqual({
      input_ids: [
        [5, 1, 7, 0, 0],
        [9, 8, 7, 6, 0],
      ],
      attention_mask: [
        [1, 1, 1, 0, 0],
        [1, 1, 1, 0, 0],
      ],
      token_type_ids: [
        [0, 1, 1, 0, 0],
        [0, 0, 0, 0, 0],
      ],
      position_ids: [
        [0, 1, 2, 0, 0],
        [0, 1, 2, 3, 0],
      ],
      [poolingMaskInput]: [
        [0, 0, 1, 0, 0],
        [1, 1, 1, 0, 0],
      ],
    });
  });

  it('attend to a padding token that is part of the text: the mask is made from lengths, never from ids', () => {
    const padded: RunItem = { ids: Int32Array.of(2, 0, 0, 3, 0), typeIds: null, keptRows: null };
    expect(feed([padded, short], 2, 6, 0)['attention_mask']).toEqual([
      [1, 1, 1, 1, 1, 0],
      [1, 1, 1, 0, 0, 0],
    ]);
  });

  it('count positions behind the padding id, which keeps its own number', () => {
    const { input_ids: ids, position_ids: positions } = feed([short, long], 2, 5, 1);
    expect(positions).toEqual([
      [2, 1, 3, 1, 1],
      [2, 3, 4, 5, 1],
    ]);
    expect(ids?.map((row) => row.at(-1))).toEqual([1, 1]);
  });

  it('fill up with copies of the last text', () => {
    expect(feed([short, long], 3, 4, null, ['input_ids'])).toEqual({
      input_ids: [
        [5, 1, 7, 0],
        [9, 8, 7, 6],
        [9, 8, 7, 6],
      ],
    });
  });

  it('are exactly the inputs that the graph has', () => {
    expect(Object.keys(feed([short], 1, 3, null, ['attention_mask', 'input_ids']))).toEqual([
      'attention_mask',
      'input_ids',
    ]);
    expect(names.every(isFedInput)).toBe(true);
    expect(isFedInput('pixel_values')).toBe(false);
    expect(() => feed([short], 1, 3, null, ['pixel_values'])).toThrow('pixel_values');
  });

  it('hold nothing of the run before', () => {
    const feeder = createFeeder();
    feeder([long], { texts: 1, tokens: 4 }, { positionPadId: null }, names);
    const again = feeder([short], { texts: 1, tokens: 4 }, { positionPadId: null }, names);
    expect(Array.from(again['input_ids']?.data as BigInt64Array, Number)).toEqual([5, 1, 7, 0]);
    expect(Array.from(again['attention_mask']?.data as BigInt64Array, Number)).toEqual([1, 1, 1, 0]);
  });
});
