import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batchProblem } from '../../../src/executor/batch-check.ts';
import type { Head, Matrix, ModelLoad, RunItem } from '../../../src/executor/protocol.ts';
import { plainLoad } from '../../support/model-facts.ts';

const model: ModelLoad = {
  ...plainLoad,
  modelId: 'm',
  graphPath: '/m.onnx',
  heads: ['dense', 'maxSim'],
  vocabularySize: 100,
  maxTokens: 4,
  precision: 'int8',
  maxSimGraphPath: '/max-sim.onnx',
};
const good: RunItem = { ids: Int32Array.of(0, 99), typeIds: Uint8Array.of(0, 1), keptRows: Int32Array.of(1) };
const inputNames = ['input_ids', 'attention_mask'];
const query: Matrix = { values: Float32Array.of(1, 0), dimension: 2 };
const problemOf = (item: Partial<RunItem>, head: Head = 'dense', queryRows: Matrix | null = query) =>
  batchProblem({ modelId: 'm', head, items: [good, { ...good, ...item }], queryRows }, model, inputNames);

describe('a batch', () => {
  it('is let through where everything is in range', () => {
    expect(problemOf({})).toBeNull();
    expect(problemOf({}, 'maxSim')).toBeNull();
    expect(problemOf({ typeIds: null, keptRows: null })).toBeNull();
    expect(problemOf({ ids: Int32Array.of(1, 2, 3, 4), typeIds: null })).toBeNull();
    expect(problemOf({ promptTokens: 2, attendedTokens: 1 })).toBeNull();
    expect(batchProblem({ modelId: 'm', head: 'dense', items: [], queryRows: null }, model, inputNames)).toBeNull();
  });

  it("of the encoder's own rows is refused where the graph does not show them", () => {
    const item = { ...good, sharedHeads: [{ head: 'hidden' as const, keptRows: null }] };
    const batches = [
      { modelId: 'm', head: 'hidden' as const, items: [good], queryRows: null },
      { modelId: 'm', head: 'dense' as const, items: [item], queryRows: null },
    ];
    for (const batch of batches) {
      expect(batchProblem(batch, model, inputNames)).toContain('has no head hidden');
      expect(batchProblem(batch, { ...model, hiddenOutput: 'last_hidden_state' }, inputNames)).toBeNull();
    }
  });

  it.each([
    ['an id at the end of the vocabulary', { ids: Int32Array.of(0, 100) }, 'outside the vocabulary'],
    ['a negative id', { ids: Int32Array.of(-1, 0) }, 'outside the vocabulary'],
    ['no token', { ids: new Int32Array(0), typeIds: null }, '0 tokens'],
    ['a token more than the model takes', { ids: new Int32Array(5), typeIds: null }, '5 tokens'],
    ['fewer segment ids than tokens', { typeIds: Uint8Array.of(0) }, '1 segment ids for 2 tokens'],
    ['a segment that does not exist', { typeIds: Uint8Array.of(0, 2) }, 'neither 0 nor 1'],
    ['a kept row behind the text', { keptRows: Int32Array.of(2) }, 'not a position'],
    ['a negative kept row', { keptRows: Int32Array.of(-1) }, 'not a position'],
    ['a prompt longer than the text', { promptTokens: 3 }, 'prompt'],
    ['a prompt of less than no token', { promptTokens: -1 }, 'prompt'],
    ['more attended tokens than there are', { attendedTokens: 3 }, 'attended'],
    ['no attended token', { attendedTokens: 0 }, 'attended'],
  ])('is refused for %s, and the position of the item is named', (_name, item, reason) => {
    expect(problemOf(item)).toContain(reason);
    expect(problemOf(item)).toContain('item 1');
  });

  it.each([
    ['no query rows', null],
    ['empty query rows', { values: new Float32Array(0), dimension: 2 }],
    ['query rows of no dimension', { values: Float32Array.of(1), dimension: 0 }],
    ['a part of a query row', { values: Float32Array.of(1, 2, 3), dimension: 2 }],
  ])('of maxSim is refused for %s', (_name, queryRows) => {
    expect(problemOf({}, 'maxSim', queryRows)).toContain('query rows');
  });

  it('of maxSim is refused where no row is kept', () => {
    expect(problemOf({ keptRows: new Int32Array(0) }, 'maxSim')).toContain('no kept row');
    expect(problemOf({ keptRows: new Int32Array(0) }, 'dense')).toBeNull();
  });

  it('is refused where tokens are to be left out and the graph has no mask for it', () => {
    const items = [{ ...good, attendedTokens: 1 }];
    const batch = { modelId: 'm', head: 'dense', items, queryRows: null } as const;
    expect(batchProblem(batch, model, ['input_ids'])).toContain('no attention_mask');
    expect(batchProblem({ ...batch, items: [{ ...good, attendedTokens: 2 }] }, model, ['input_ids'])).toBeNull();
  });

  it('is refused for a text longer than the length that the graph is fixed to', () => {
    const fixed: ModelLoad = { ...model, runPolicy: { kind: 'padded', fixedBatch: null, fixedTokens: 3 } };
    const item = { ...good, ids: Int32Array.of(1, 2, 3, 4), typeIds: null };
    const batch = { modelId: 'm', head: 'dense', items: [item], queryRows: null } as const;
    expect(batchProblem(batch, fixed, inputNames)).toContain('4 tokens, allowed are 1 to 3');
  });

  it('is refused for a model or a head that is not there', () => {
    expect(problemOf({}, 'sparse')).toContain('no head sparse');
    const unknown = batchProblem({ modelId: 'x', head: 'dense', items: [], queryRows: null }, undefined, []);
    expect(unknown).toContain('the id x');
  });

  it('is never refused with anything of the text', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_000_000, max: 2_000_000_000 }), (id) => {
        expect(problemOf({ ids: Int32Array.of(7, id) })).not.toContain(String(id));
      }),
    );
  });
});
