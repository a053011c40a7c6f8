import { describe, expect, it } from 'vitest';
import { hiddenRows } from '../../../src/task/hidden-rows.ts';
import { contextOf, createFakeScheduler, createServed, rejectionOf } from './fakes.ts';

const inputs = (texts: readonly string[]) => ({ texts, kind: null, field: 'inputs' });
const roomy = { maxAnswerBytes: 1e9, maxRowBytes: 1 };
const serve = () => createServed({ hiddenSize: 2, hiddenOutput: 'last_hidden_state' });

/** Each token has its id twice as its row. */
const doubling = () =>
  createFakeScheduler(({ ids }) => ({
    values: Float32Array.from([...ids].flatMap((id) => [id, id])),
    indices: null,
  }));

describe('the rows of the encoder', () => {
  it('are one per token of each text, special ones included, with their counts', async () => {
    const scheduler = doubling();
    const { matrices, dimension, tokenCounts } = await hiddenRows(
      serve(),
      inputs(['a', '']),
      roomy,
      contextOf(scheduler),
    );
    expect(dimension).toBe(2);
    expect(tokenCounts).toEqual([3, 2]);
    expect(matrices.map(({ values }) => [...values])).toEqual([
      [1, 1, 97, 97, 2, 2],
      [1, 1, 2, 2],
    ]);
    expect(scheduler.jobs[0]?.key.head).toBe('hidden');
    expect(scheduler.jobs[0]?.items.map(({ keptRows }) => keptRows)).toEqual([null, null]);
  });

  it('are refused for a model whose graph gives pooled vectors only, before anything is asked for', async () => {
    const scheduler = doubling();
    const error = await rejectionOf(hiddenRows(createServed(), inputs(['a']), roomy, contextOf(scheduler)));
    expect(error).toMatchObject({ errorName: 'unsupportedOption' });
    expect(error.message).toContain('m: its graph gives one vector');
    expect(scheduler.loads).toEqual([]);
  });

  it('are refused before any run where the answer could exceed its bound', async () => {
    const scheduler = doubling();
    const bound = { maxAnswerBytes: 49, maxRowBytes: 10 };
    const error = await rejectionOf(hiddenRows(serve(), inputs(['abc']), bound, contextOf(scheduler)));
    expect(error).toMatchObject({ errorName: 'tooLarge', data: { limit: 49, received: 50 } });
    expect(scheduler.jobs).toEqual([]);
    expect(scheduler.releaseCount()).toBe(1);
  });

  it('of a text without any token are none', async () => {
    const served = serve();
    const none = { ids: new Int32Array(), typeIds: null, isTruncated: false, totalTokens: 0, isTotalMinimum: false };
    const bare = { ...served, tokenizer: { ...served.tokenizer, tokenize: () => Promise.resolve([none]) } };
    const { matrices } = await hiddenRows(bare, inputs(['']), roomy, contextOf(doubling()));
    expect(matrices.map(({ values }) => values.length)).toEqual([0]);
  });
});
