import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { ModelManifest } from '../../../src/model/manifest.ts';
import { emptyUsage } from '../../../src/task/context.ts';
import { rerank } from '../../../src/task/rerank.ts';
import { sigmoid } from '../../../src/tensor/score.ts';
import { contextOf, createFakeScheduler, createServed, rejectionOf } from './fakes.ts';
import { plainTokenRows } from '../../../src/model/token-row-rules.ts';

const reranker = (method: 'cross-encoder' | 'colbert', manifest: Partial<ModelManifest> = {}) => ({
  method,
  served: createServed({ maxTokens: 16, ...manifest }),
});
const input = (query: string, passages: readonly string[], field = 'passages') => ({ query, passages, field });
const methods = ['cross-encoder', 'colbert'] as const;

/** Gives each passage the score of its place in `scores`, and a query its ids as rows. */
const scoring = (scores: readonly number[]) =>
  createFakeScheduler((item, job, index) => ({
    values: job.key.head === 'rows' ? Float32Array.from(item.ids) : Float32Array.of(scores[index] ?? 0),
    indices: null,
  }));

describe.each(methods)('reranking with the method %s', (method) => {
  it('runs nothing for no passages', async () => {
    const scheduler = scoring([]);
    const result = await rerank(reranker(method), input('q', []), contextOf(scheduler));
    const nothing = { scores: [], raw: [], order: [], tokenCounts: [], queryRows: null };
    expect(result).toEqual({ ...nothing, usage: emptyUsage });
    expect(scheduler.loads).toEqual([]);
  });

  it('orders best first, equal scores by ascending index', async () => {
    const { order } = await rerank(
      reranker(method),
      input('q', ['a', 'b', 'c', 'd']),
      contextOf(scoring([1, 3, 3, 2])),
    );
    expect(order).toEqual([1, 2, 3, 0]);
  });

  it('scores blank passages and keeps their place', async () => {
    const { scores, order } = await rerank(reranker(method), input('q', ['', 'x', '']), contextOf(scoring([0, 2, 0])));
    expect(scores).toHaveLength(3);
    expect(order).toEqual([1, 0, 2]);
  });

  it('refuses a query that is too long, before any run', async () => {
    const scheduler = scoring([1]);
    const error = await rejectionOf(rerank(reranker(method), input('q'.repeat(99), ['a']), contextOf(scheduler)));
    expect(error).toMatchObject({ errorName: 'invalidParams', data: { field: 'query', limit: 16 } });
    expect(scheduler.jobs).toEqual([]);
    expect(scheduler.releaseCount()).toBe(1);
  });

  it('refuses a passage that is too long before any run, where it must not be cut', async () => {
    const scheduler = scoring([1, 1]);
    const context = contextOf(scheduler, { truncation: 'refuse' });
    const call = rerank(reranker(method), input('q', ['a', 'x'.repeat(20)], 'documents'), context);
    expect(await rejectionOf(call)).toMatchObject({
      errorName: 'invalidParams',
      data: { field: 'documents[1]', limit: 16 },
    });
    expect(scheduler.jobs).toEqual([]);
    expect(scheduler.releaseCount()).toBe(1);
  });

  it('gives what the order follows, and the tokens that ran for each passage', async () => {
    const raw = [0.5, -2];
    const found = await rerank(reranker(method), input('q', ['a', 'bc']), contextOf(scoring(raw)));
    expect(found.raw).toEqual(raw.map(Math.fround));
    expect(found.scores).toEqual(method === 'colbert' ? found.raw : found.raw.map(sigmoid));
    // A pair has the query and one more special token; the rows of a passage are its own.
    expect(found.tokenCounts).toEqual(method === 'colbert' ? [3, 4] : [5, 6]);
    expect(found.usage.inputTokens).toBe(method === 'colbert' ? 3 + 3 + 4 : 5 + 6);
  });

  it('names passages in errors and reports the cut ones', async () => {
    const scheduler = scoring([1, 1]);
    const { usage } = await rerank(reranker(method), input('q', ['a', 'x'.repeat(20)]), contextOf(scheduler));
    expect(scheduler.jobs.at(-1)?.fieldOf(1)).toBe('passages[1]');
    expect(usage.truncated).toEqual([1]);
    expect(usage.device).toBe('cpu:0');
  });

  it('asks for room before it tokenises', async () => {
    const scheduler = scoring([1]);
    scheduler.refuse(new ServiceError('overloaded', 'full'));
    const configured = reranker(method);
    const error = await rejectionOf(rerank(configured, input('q', ['a']), contextOf(scheduler)));
    expect(error.errorName).toBe('overloaded');
    expect(configured.served.tokenizer.texts).toEqual([]);
  });

  it('reports progress over the passages, and passes on the lane', async () => {
    const progress: string[] = [];
    const scheduler = scoring([1, 2]);
    const context = contextOf(scheduler, {
      lane: 'bulk',
      onProgress: (done, total) => progress.push(`${done}/${total}`),
    });
    await rerank(reranker(method), input('q', ['a', 'b']), context);
    expect(progress).toEqual(['1/2', '2/2']);
    expect(scheduler.jobs.every(({ lane }) => lane === 'bulk')).toBe(true);
  });
});

describe('a cross-encoder', () => {
  it('gives sigmoid of the logit, once, and sorts by the logit', async () => {
    const logits = [18, 25, 39, 40, -6];
    const result = await rerank(reranker('cross-encoder'), input('q', logits.map(String)), contextOf(scoring(logits)));
    expect(result.order).toEqual([3, 2, 1, 0, 4]);
    for (const [at, logit] of logits.entries()) expect(result.scores[at]).toBeCloseTo(1 / (1 + Math.exp(-logit)), 12);
    expect(result.scores[4]).toBeCloseTo(0.0025, 4);
  });

  it('whose model says so gives the logit itself', async () => {
    const { scores } = await rerank(
      reranker('cross-encoder', { scoreActivation: 'identity' }),
      input('q', ['a', 'b']),
      contextOf(scoring([2, -3])),
    );
    expect(scores).toEqual([2, -3]);
  });

  it('reads pairs with their segments, in one job, and counts their tokens', async () => {
    const scheduler = scoring([1, 2]);
    const { usage } = await rerank(reranker('cross-encoder'), input('q', ['ab', '']), contextOf(scheduler));
    expect(scheduler.jobs).toHaveLength(1);
    const [job] = scheduler.jobs;
    expect(job?.key).toEqual({ modelId: 'm', head: 'logit', queryRows: null });
    expect(job?.items.map(({ ids, typeIds }) => [[...ids], [...(typeIds ?? [])]])).toEqual([
      [
        [1, 113, 2, 97, 98, 2],
        [0, 0, 0, 1, 1, 1],
      ],
      [
        [1, 113, 2, 2],
        [0, 0, 0, 1],
      ],
    ]);
    expect(usage.inputTokens).toBe(6 + 4);
    expect(scheduler.loads[0]?.items).toBe(2);
  });
});

describe('colbert', () => {
  it('runs the query first, then every passage against its rows', async () => {
    const scheduler = scoring([5, 7]);
    const configured = reranker('colbert', { prompts: { query: 'Q', document: 'D', unspecified: 'U' } });
    const result = await rerank(configured, input('q', ['ab', 'c']), contextOf(scheduler));
    expect(configured.served.tokenizer.texts).toEqual(['Qq', 'Dab', 'Dc']);
    const [first, second] = scheduler.jobs;
    expect(first?.key).toEqual({ modelId: 'm', head: 'rows', queryRows: null });
    expect(first?.fieldOf(0)).toBe('query');
    expect(second?.key).toEqual({
      modelId: 'm',
      head: 'maxSim',
      queryRows: { values: Float32Array.of(1, 81, 113, 2), dimension: 4 },
    });
    expect(result.scores).toEqual([5, 7]);
    expect(result.usage).toMatchObject({ inputTokens: 4 + 5 + 4, queueMs: 4.8, computeMs: 7.2 });
    expect(scheduler.loads[0]?.items).toBe(3);
    expect(scheduler.releaseCount()).toBe(1);
  });

  it('leaves skipped tokens out of passages, never out of the query', async () => {
    const scheduler = scoring([1]);
    const configured = reranker('colbert', { tokenRows: { ...plainTokenRows, documentSkipTokens: [','] } });
    await rerank(configured, input('a,b', ['a,b']), contextOf(scheduler));
    expect(scheduler.jobs[0]?.items[0]?.keptRows).toBeNull();
    expect(scheduler.jobs[1]?.items[0]?.keptRows).toEqual(Int32Array.of(0, 1, 3, 4));
  });

  it('says so where a very long query was not counted to its end', async () => {
    const call = rerank(reranker('colbert'), input('q'.repeat(1000), ['a']), contextOf(scoring([1])));
    expect((await rejectionOf(call)).data).toMatchObject({ field: 'query', tokensIsMinimum: true });
  });

  it('ends between its two steps when it is aborted', async () => {
    const controller = new AbortController();
    const reason = new ServiceError('cancelled', 'cancelled');
    const scheduler = createFakeScheduler((item) => {
      controller.abort(reason);
      return { values: Float32Array.from(item.ids), indices: null };
    });
    const context = contextOf(scheduler, { signal: controller.signal });
    expect(await rejectionOf(rerank(reranker('colbert'), input('q', ['a']), context))).toBe(reason);
    expect(scheduler.jobs).toHaveLength(1);
    expect(scheduler.releaseCount()).toBe(1);
  });
});
