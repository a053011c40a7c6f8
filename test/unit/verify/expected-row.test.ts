/** Owns the rules by which an output of transformers.js becomes the value that a head should give. */
import { describe, expect, it } from 'vitest';
import type { RunItem } from '../../../src/executor/protocol.ts';
import type { GraphHead } from '../../../src/model/head-source.ts';
import { plainSplade } from '../../../src/model/sparse-rules.ts';
import { expectedRow } from '../../../src/verify/expected-row.ts';
import type { ExpectedFacts } from '../../../src/verify/expected-row.ts';

const plainFacts: ExpectedFacts = {
  vectorSteps: [],
  rowSteps: [],
  isNormalized: true,
  sparse: null,
  positiveLabel: null,
  yesNo: null,
};
const output = (dims: readonly number[], values: readonly number[]) => ({
  type: 'float32',
  dims,
  data: Float32Array.from(values),
});
const item = (more: Partial<RunItem> = {}): RunItem => ({
  ids: Int32Array.of(1, 5, 2),
  typeIds: null,
  keptRows: null,
  ...more,
});
const recipe = (head: GraphHead, facts: Partial<ExpectedFacts>, isComplete = false, name = 'last_hidden_state') => ({
  head,
  source: { output: { name, elementType: 1, shape: null }, isComplete },
  facts: { ...plainFacts, ...facts },
  tensors: new Map(),
});
const rows = output([1, 3, 2], [3, 0, 0, 4, 6, 8]);

describe('what a head should give', () => {
  it('dense: the steps of the model, in their order', () => {
    const steps = [{ kind: 'pool', modes: ['mean'] }, { kind: 'normalize' }] as const;
    const { values } = expectedRow(rows, recipe('dense', { vectorSteps: steps }), item());
    expect(Array.from(values)).toEqual([Math.fround(0.6), Math.fround(0.8)]);
  });

  it('dense: tokens of a prompt that the pooling leaves out do not count', () => {
    const steps = [{ kind: 'pool', modes: ['mean', 'cls'] }] as const;
    const { values } = expectedRow(rows, recipe('dense', { vectorSteps: steps }), item({ promptTokens: 1 }));
    expect(Array.from(values)).toEqual([3, 6, 0, 4]);
  });

  it('dense: a vector that the graph gives is only scaled', () => {
    const { values } = expectedRow(output([1, 2], [3, 4]), recipe('dense', {}, true), item());
    expect(Array.from(values)).toEqual([Math.fround(0.6), Math.fround(0.8)]);
  });

  it('rows: those that are kept, each of length 1', () => {
    const { values } = expectedRow(rows, recipe('rows', {}), item({ keptRows: Int32Array.of(0, 2) }));
    expect(Array.from(values)).toEqual([1, 0, Math.fround(0.6), Math.fround(0.8)]);
  });

  it('rows: an output without the first token has a row of zeros for it', () => {
    const { values } = expectedRow(output([1, 1, 2], [3, 4]), recipe('rows', {}, true, 'colbert_vecs'), item());
    expect(Array.from(values)).toEqual([0, 0, Math.fround(0.6), Math.fround(0.8)]);
  });

  it('sparse: the largest log(1 + relu) of each term, terms of weight zero left out', () => {
    const logits = output([1, 2, 3], [-1, 2, 0, -3, 1, Math.E - 1]);
    const { indices, values } = expectedRow(logits, recipe('sparse', { sparse: plainSplade }), item());
    expect(Array.from(indices ?? [])).toEqual([1, 2]);
    expect(values[0]).toBeCloseTo(Math.log(3), 6);
    expect(values[1]).toBeCloseTo(1, 6);
  });

  it('sparse: a weight for each token goes to its id, special tokens left out', () => {
    const sparse = { form: 'tokens', layer: null, unweightedIds: [1, 2] } as const;
    const weights = output([1, 3, 1], [9, 0.5, 9]);
    const { indices, values } = expectedRow(weights, recipe('sparse', { sparse }, true), item());
    expect([Array.from(indices ?? []), Array.from(values)]).toEqual([[5], [0.5]]);
  });

  it('logit: the only one, the positive one minus the other, or yes minus no of the last token', () => {
    const logitOf = (dims: readonly number[], values: readonly number[], facts: Partial<ExpectedFacts>) =>
      expectedRow(output(dims, values), recipe('logit', facts), item()).values[0];
    expect(logitOf([1, 1], [2.5], {})).toBe(2.5);
    expect(logitOf([1, 2], [3, 1], { positiveLabel: 1 })).toBe(-2);
    const yesNo = { yesId: 1, noId: 0, prefix: '', body: '', suffix: '', instruction: '' };
    expect(logitOf([1, 2, 2], [9, 9, 1, 4], { yesNo })).toBe(3);
  });

  it('float16 bits are read as the numbers that they are', () => {
    const halves = { type: 'float16', dims: [1, 2], data: Uint16Array.of(0x3c00, 0xc000) };
    const { values } = expectedRow(halves, recipe('dense', { isNormalized: false }, true), item());
    expect(Array.from(values)).toEqual([1, -2]);
  });
});
