import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModelLoad, RunItem } from '../../../src/executor/protocol.ts';
import { identitiesOf, type ExecutionGroup } from '../../../src/result-cache/identity.ts';
import { itemLayout, jobDigest, keyBytes, keyOf } from '../../../src/result-cache/row-key.ts';
import type { RunKey } from '../../../src/schedule/item.ts';
import { plainLoad } from '../../support/model-facts.ts';

const item: Required<Omit<RunItem, 'sharedHeads'>> = {
  ids: Int32Array.of(1, 2, 3),
  typeIds: Uint8Array.of(0, 0, 1),
  keptRows: Int32Array.of(0, 2),
  promptTokens: 1,
  attendedTokens: 2,
};
const key: RunKey = {
  modelId: 'm',
  head: 'maxSim',
  queryRows: { values: Float32Array.of(1, 2, 3, 4), dimension: 2 },
};
const keyFor = (identity: string, runKey: RunKey, run: RunItem): string =>
  keyOf(itemLayout(jobDigest(identity, runKey), run));
const ofItem = (changed: Partial<RunItem>) => keyFor('i', key, { ...item, ...changed });
const ofJob = (changed: Partial<RunKey>) => keyFor('i', { ...key, ...changed }, item);
const { promptTokens, attendedTokens, ...bare } = item;

/** Every member must have its line, so that a new one cannot be forgotten; null: it changes none of the item's values. */
const itemChanges: Readonly<Record<keyof RunItem, readonly string[] | null>> = {
  ids: [
    ofItem({ ids: Int32Array.of(1, 2, 4) }),
    ofItem({ ids: Int32Array.of(1, 2) }),
    ofItem({ ids: Int32Array.of(2, 1, 3) }),
  ],
  typeIds: [
    ofItem({ typeIds: null }),
    ofItem({ typeIds: Uint8Array.of(0, 1, 1) }),
    ofItem({ typeIds: new Uint8Array() }),
  ],
  keptRows: [
    ofItem({ keptRows: null }),
    ofItem({ keptRows: Int32Array.of(0, 1) }),
    ofItem({ keptRows: new Int32Array() }),
  ],
  promptTokens: [
    keyFor('i', key, { ...bare, attendedTokens }),
    ofItem({ promptTokens: 0 }),
    ofItem({ promptTokens: 2 }),
  ],
  attendedTokens: [
    keyFor('i', key, { ...bare, promptTokens }),
    ofItem({ attendedTokens: 1 }),
    ofItem({ attendedTokens: 3 }),
  ],
  sharedHeads: null,
};
const jobChanges: Readonly<Record<keyof RunKey, readonly string[]>> = {
  modelId: [ofJob({ modelId: 'm on cuda' }), ofJob({ modelId: '' })],
  head: [ofJob({ head: 'rows' }), ofJob({ head: 'dense' })],
  queryRows: [
    ofJob({ queryRows: null }),
    ofJob({ queryRows: { values: Float32Array.of(1, 2, 3, 4), dimension: 4 } }),
    ofJob({ queryRows: { values: Float32Array.of(1, 2, 3, 5), dimension: 2 } }),
    ofJob({ queryRows: { values: Float32Array.of(1, 2), dimension: 2 } }),
  ],
};

describe('the key of a row', () => {
  it('changes with every part of the item, of the job and of what executes', () => {
    const changed = [...Object.values(itemChanges), ...Object.values(jobChanges)].flatMap((keys) => keys ?? []);
    const keys = [keyFor('i', key, item), keyFor('other', key, item), ...changed];
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('is the same for the same parts, wherever they lie in memory', () => {
    const wide = Int32Array.of(9, 1, 2, 3, 9);
    const typeIds = Uint8Array.of(7, 0, 0, 1).subarray(1);
    expect(ofItem({ ids: wide.subarray(1, 4), typeIds })).toBe(keyFor('i', key, item));
  });

  it('is a digest of one size', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => /^[\w-]+$/.test(keyOf(bytes)) && keyOf(bytes).length === keyBytes),
    );
  });

  it('two items have the same bytes exactly where they are the same', () => {
    // Few values, so that parts often end where others begin.
    const few = fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 3 });
    const ints = few.map((values) => Int32Array.from(values));
    const count = fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined });
    const parts = fc.tuple(ints, fc.option(few), fc.option(ints), count, count);
    const itemOf = ([ids, typeIds, keptRows, promptTokens, attendedTokens]: Parts): RunItem => ({
      ids,
      typeIds: typeIds === null ? null : Uint8Array.from(typeIds),
      keptRows,
      ...(promptTokens === undefined ? {} : { promptTokens }),
      ...(attendedTokens === undefined ? {} : { attendedTokens }),
    });
    type Parts = [Int32Array, number[] | null, Int32Array | null, number | undefined, number | undefined];
    const job = jobDigest('i', key);
    const textOf = (given: Parts) =>
      JSON.stringify(given.map((part) => (ArrayBuffer.isView(part) ? [...part] : (part ?? 'none'))));
    fc.assert(
      fc.property(parts, parts, (left, right) => {
        const isSameLayout = Buffer.compare(itemLayout(job, itemOf(left)), itemLayout(job, itemOf(right))) === 0;
        expect(isSameLayout).toBe(textOf(left) === textOf(right));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the identity of what executes', () => {
  const load: ModelLoad = {
    ...plainLoad,
    modelId: 'm',
    graphPath: '/cache/m-1.onnx',
    heads: ['dense'],
    vocabularySize: 10,
    maxTokens: 16,
    precision: 'fp32',
    maxSimGraphPath: null,
  };
  const groupOf = (provider: 'cpu' | 'cuda', changed: Partial<ModelLoad> = {}): ExecutionGroup => ({
    devices: [{ provider: { name: provider, deviceIndex: 0 } }],
    loads: [{ ...load, ...changed }],
  });
  const identityOf = (...groups: ExecutionGroup[]) => identitiesOf(groups)('m');

  it('changes with the prepared graph, the precision and the provider', () => {
    const identities = [
      identityOf(groupOf('cpu')),
      identityOf(groupOf('cuda')),
      identityOf(groupOf('cpu', { graphPath: '/cache/m-2.onnx' })),
      identityOf(groupOf('cpu', { precision: 'int8' })),
      identityOf(groupOf('cpu'), groupOf('cuda')),
    ];
    expect(new Set(identities).size).toBe(identities.length);
    expect(identityOf(groupOf('cpu'))).toBe(identities[0]);
  });

  it('is of models that are loaded', () => {
    expect(() => identitiesOf([groupOf('cpu')])('other')).toThrow('no executor');
  });
});
