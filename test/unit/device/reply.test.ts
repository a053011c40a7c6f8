import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readLoadReply, readRunReply } from '../../../src/device/reply.ts';
import type { Head, RunBatch } from '../../../src/executor/protocol.ts';
import { fakeRows } from '../../support/fake-channel.ts';

const batchOf = (head: Head): RunBatch => ({
  modelId: 'm',
  head,
  items: [
    { ids: Int32Array.of(1, 2, 3), typeIds: null, keptRows: null },
    { ids: Int32Array.of(4, 5, 6), typeIds: null, keptRows: Int32Array.of(0, 2) },
  ],
  queryRows: head === 'maxSim' ? { values: Float32Array.of(1, 0), dimension: 2 } : null,
});
const heads: readonly Head[] = ['dense', 'sparse', 'rows', 'logit', 'maxSim'];
const resultOf = (rows: unknown) => ({ type: 'result', runId: 7, rows, computeMs: 1, residentBytes: 1 });

describe('an answer to a run', () => {
  it.each(heads)('is believed for the head %s where it fits the batch', (head) => {
    const batch = batchOf(head);
    const rows = fakeRows(batch);
    expect(readRunReply(resultOf(rows), 7, batch)).toEqual({ isValid: true, reply: resultOf(rows) });
  });

  it('is believed where it says that the run failed', () => {
    for (const kind of ['failed', 'outOfMemory', 'deviceLost']) {
      const reply = { type: 'runFailed', runId: 7, reason: 'why', kind };
      expect(readRunReply(reply, 7, batchOf('dense'))).toEqual({ isValid: true, reply });
    }
  });

  const dense = fakeRows(batchOf('dense'));
  it.each([
    ['nothing', null],
    ['a text', 'result'],
    ['a list', [1]],
    ['another run', { ...resultOf(dense), runId: 6 }],
    ['another kind of message', { type: 'loaded', runId: 7 }],
    ['a failure without a reason', { type: 'runFailed', runId: 7, kind: 'failed' }],
    ['a failure of no kind', { type: 'runFailed', runId: 7, reason: 'why' }],
    ['a failure of an unknown kind', { type: 'runFailed', runId: 7, reason: 'why', kind: 'bored' }],
    ['too few rows', resultOf(dense.slice(1))],
    ['too many rows', resultOf([...dense, ...dense])],
    ['no rows', resultOf(undefined)],
    ['rows of plain numbers', resultOf([[1], [2]])],
    ['a row of doubles', resultOf([dense[0], { values: Float64Array.of(1), indices: null }])],
    ['an empty vector', resultOf([dense[0], { values: new Float32Array(0), indices: null }])],
    ['a vector with indices', resultOf([dense[0], { values: Float32Array.of(1), indices: Int32Array.of(1) }])],
    ['no time', { ...resultOf(dense), computeMs: Number.NaN }],
    ['no memory', { ...resultOf(dense), residentBytes: undefined }],
    ['memory that is not a number', { ...resultOf(dense), residentBytes: Number.NaN }],
  ])('is garbage where it holds %s', (_name, message) => {
    expect(readRunReply(message, 7, batchOf('dense')).isValid).toBe(false);
  });

  it('is garbage where terms and weights differ in number', () => {
    const row = { values: Float32Array.of(1, 2), indices: Int32Array.of(1) };
    expect(readRunReply(resultOf([row, row]), 7, batchOf('sparse')).isValid).toBe(false);
  });

  it('is garbage where the values are no whole number of kept rows', () => {
    const row = { values: Float32Array.of(1, 2, 3), indices: null };
    expect(readRunReply(resultOf([row, row]), 7, batchOf('rows')).isValid).toBe(false);
  });

  it.each(['logit', 'maxSim'] as const)('is garbage where %s has more than one value', (head) => {
    const row = { values: Float32Array.of(1, 2), indices: null };
    expect(readRunReply(resultOf([row, row]), 7, batchOf(head)).isValid).toBe(false);
  });

  it('never throws, whatever came', () => {
    fc.assert(
      fc.property(fc.anything(), fc.constantFrom(...heads), (message, head) => {
        expect(readRunReply(message, 7, batchOf(head)).isValid).toBe(false);
        expect(readLoadReply(message).isValid).toBe(false);
      }),
    );
  });
});

describe('an answer to a load', () => {
  it('is what loaded, or why it did not', () => {
    const placements = [{ modelId: 'm', foreignNodes: ['attention (Attention)'] }];
    const loaded = { type: 'loaded', executionProvider: 'webgpu', loadMs: 3, placements };
    const failed = { type: 'loadFailed', reason: 'why' };
    expect(readLoadReply(loaded)).toEqual({ isValid: true, reply: loaded });
    expect(readLoadReply(failed)).toEqual({ isValid: true, reply: failed });
  });

  it.each([
    ['nothing', undefined],
    ['a list of names', ['m']],
    ['a model without its nodes', [{ modelId: 'm' }]],
    ['nodes that are not names', [{ modelId: 'm', foreignNodes: [1] }]],
  ])('is garbage where it says of what runs where %s', (_name, placements) => {
    expect(readLoadReply({ type: 'loaded', executionProvider: 'cpu', loadMs: 3, placements }).isValid).toBe(false);
  });
});
