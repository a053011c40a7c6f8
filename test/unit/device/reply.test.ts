import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OpenRuns } from '../../../src/device/open-runs.ts';
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
const heads: readonly Head[] = ['dense', 'sparse', 'rows', 'logit', 'maxSim', 'hidden'];
const resultOf = (rows: unknown) => ({
  type: 'result',
  runId: 7,
  rows,
  computeMs: 1,
  paddedTokens: 6,
  residentBytes: 1,
  nextRunId: null,
});

/** Run 7 with nothing skipped, and run 8 behind it, of which nothing will be run. */
function openRuns(batch: RunBatch, skipped: readonly number[] = []): OpenRuns {
  const runs = new OpenRuns();
  const options = { isUrgent: false, expectedMs: 1, batch };
  runs.add({ ...options, runId: 7, skipped: new Set(skipped) }, 0);
  runs.add({ ...options, runId: 8, skipped: new Set([0, 1]) }, 0);
  return runs;
}
const read = (message: unknown, batch: RunBatch, skipped?: readonly number[]) =>
  readRunReply(message, openRuns(batch, skipped));

describe('an answer to a run', () => {
  it.each(heads)('is believed for the head %s where it fits the batch', (head) => {
    const batch = batchOf(head);
    const rows = fakeRows(batch);
    expect(read(resultOf(rows), batch)).toEqual({ isValid: true, reply: resultOf(rows) });
  });

  it('is believed where it says that the run failed', () => {
    for (const kind of ['failed', 'outOfMemory', 'deviceLost']) {
      const reply = { type: 'runFailed', runId: 7, reason: 'why', kind, nextRunId: 8 };
      expect(read(reply, batchOf('dense'))).toEqual({ isValid: true, reply });
    }
  });

  it('is believed where it goes on with another open run, or with none that it has read', () => {
    for (const nextRunId of [8, null]) {
      const reply = { ...resultOf(fakeRows(batchOf('dense'))), nextRunId };
      expect(read(reply, batchOf('dense'))).toEqual({ isValid: true, reply });
    }
  });

  it('may lack the rows that were skipped, and only those', () => {
    const [first, second] = fakeRows(batchOf('dense'));
    const batch = batchOf('dense');
    expect(read(resultOf([null, second]), batch, [0]).isValid).toBe(true);
    expect(read(resultOf([null, null]), batch, [0, 1]).isValid).toBe(true);
    // What had begun when it was skipped has its row all the same.
    expect(read(resultOf([first, second]), batch, [0]).isValid).toBe(true);
    expect(read(resultOf([first, null]), batch, [0]).isValid).toBe(false);
    expect(read(resultOf([null, second]), batch).isValid).toBe(false);
    expect(read(resultOf([undefined, second]), batch, [0]).isValid).toBe(false);
  });

  const dense = fakeRows(batchOf('dense'));
  const failed = { type: 'runFailed', runId: 7, reason: 'why', kind: 'failed', nextRunId: null };
  it.each([
    ['nothing', null],
    ['a text', 'result'],
    ['a list', [1]],
    ['another run', { ...resultOf(dense), runId: 6 }],
    ['another kind of message', { type: 'loaded', runId: 7, nextRunId: null }],
    ['a failure without a reason', { ...failed, reason: undefined }],
    ['a failure of no kind', { ...failed, kind: undefined }],
    ['a failure of an unknown kind', { ...failed, kind: 'bored' }],
    ['too few rows', resultOf(dense.slice(1))],
    ['too many rows', resultOf([...dense, ...dense])],
    ['no rows', resultOf(undefined)],
    ['rows of plain numbers', resultOf([[1], [2]])],
    ['a row of doubles', resultOf([dense[0], { values: Float64Array.of(1), indices: null }])],
    ['an empty vector', resultOf([dense[0], { values: new Float32Array(0), indices: null }])],
    ['a vector with indices', resultOf([dense[0], { values: Float32Array.of(1), indices: Int32Array.of(1) }])],
    ['no time', { ...resultOf(dense), computeMs: Number.NaN }],
    ['no number of tokens', { ...resultOf(dense), paddedTokens: undefined }],
    ['a negative number of tokens', { ...resultOf(dense), paddedTokens: -1 }],
    ['no word on what is next', { ...resultOf(dense), nextRunId: undefined }],
    ['itself as the next run', { ...resultOf(dense), nextRunId: 7 }],
    ['an unknown run as the next one', { ...resultOf(dense), nextRunId: 9 }],
    ['a failure that goes on with an unknown run', { ...failed, nextRunId: 9 }],
    ['no memory', { ...resultOf(dense), residentBytes: undefined }],
    ['memory that is not a number', { ...resultOf(dense), residentBytes: Number.NaN }],
  ])('is garbage where it holds %s', (_name, message) => {
    expect(read(message, batchOf('dense')).isValid).toBe(false);
  });

  it('is garbage where terms and weights differ in number', () => {
    const row = { values: Float32Array.of(1, 2), indices: Int32Array.of(1) };
    expect(read(resultOf([row, row]), batchOf('sparse')).isValid).toBe(false);
  });

  it('is garbage where the values are no whole number of kept rows', () => {
    const row = { values: Float32Array.of(1, 2, 3), indices: null };
    expect(read(resultOf([row, row]), batchOf('rows')).isValid).toBe(false);
  });

  it.each(['logit', 'maxSim'] as const)('is garbage where %s has more than one value', (head) => {
    const row = { values: Float32Array.of(1, 2), indices: null };
    expect(read(resultOf([row, row]), batchOf(head)).isValid).toBe(false);
  });

  it('never throws, whatever came', () => {
    fc.assert(
      fc.property(fc.anything(), fc.constantFrom(...heads), (message, head) => {
        expect(read(message, batchOf(head)).isValid).toBe(false);
        expect(readLoadReply(message).isValid).toBe(false);
      }),
    );
  });
});

describe('an answer to a load', () => {
  it('is what loaded, or why it did not', () => {
    const placements = [{ modelId: 'm', foreignNodes: ['attention (Attention)'] }];
    const timings = [{ modelId: 'm', head: 'dense', timings: [{ texts: 1, tokens: 8, ms: 0.5 }] }];
    const loaded = { type: 'loaded', executionProvider: 'webgpu', loadMs: 3, placements, timings };
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
    const reply = { type: 'loaded', executionProvider: 'cpu', loadMs: 3, placements, timings: [] };
    expect(readLoadReply(reply).isValid).toBe(false);
  });

  const timed = (timing: unknown) => [{ modelId: 'm', head: 'dense', timings: [timing] }];
  it.each([
    ['nothing', undefined],
    ['a list of numbers', [1]],
    ['no model', [{ head: 'dense', timings: [] }]],
    ['an unknown head', [{ modelId: 'm', head: 'toString', timings: [] }]],
    ['no list of times', [{ modelId: 'm', head: 'dense' }]],
    ['no size', timed({ ms: 1 })],
    ['no texts', timed({ texts: 0, tokens: 8, ms: 1 })],
    ['half a token', timed({ texts: 1, tokens: 0.5, ms: 1 })],
    ['a negative time', timed({ texts: 1, tokens: 8, ms: -1 })],
    ['no number for a time', timed({ texts: 1, tokens: 8, ms: Number.NaN })],
    ['an endless time', timed({ texts: 1, tokens: 8, ms: Infinity })],
  ])('is garbage where it says of how long runs take %s', (_name, timings) => {
    const reply = { type: 'loaded', executionProvider: 'cpu', loadMs: 3, placements: [], timings };
    expect(readLoadReply(reply).isValid).toBe(false);
  });
});
