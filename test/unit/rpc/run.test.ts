import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { createCallerQuota } from '../../../src/rpc/quota.ts';
import type { CallContext } from '../../../src/rpc/service.ts';
import type { InputList, RequestOf, TaskRequest } from '../../../src/rpc/task-request.ts';
import type { CallTimes } from '../../../src/telemetry/stages.ts';
import { createFakeScheduler } from '../task/fakes.ts';
import { allTasks, createHarness, type Harness } from './harness.ts';

const inputsOf = (...values: InputList['values']): InputList => ({ values, field: 'input' });
const options = { kind: null, model: null, truncation: null, lane: null } as const;
const embedding = (...values: InputList['values']): RequestOf<'embed'> => ({
  method: 'embed',
  inputs: inputsOf(...values),
  ...options,
  dimensions: null,
});
const reranking = (...values: InputList['values']): RequestOf<'rerank'> => ({
  method: 'rerank',
  query: 'q',
  passages: { values, field: 'documents' },
  model: null,
  rerankMethod: null,
  truncation: null,
  lane: null,
});

async function refusalOf(
  { run, contextOf }: Harness,
  request: TaskRequest,
  context: Partial<CallContext> = {},
): Promise<ServiceError> {
  try {
    await run(request, contextOf(context));
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('a task that came in another protocol', () => {
  it('gives the values of the method of RCP, the model that ran and the tokens of each input', async () => {
    const harness = createHarness();
    const { vectors, model, tokenCounts, usage } = await harness.run(embedding('ab', 'c'), harness.contextOf());
    const { result } = await harness.call('embed', { inputs: ['ab', 'c'] });
    expect(vectors.map((vector) => [...vector])).toEqual(result?.['vectors']);
    expect(model).toBe('dense');
    expect(tokenCounts).toEqual([4, 3]);
    expect(usage).toMatchObject({ inputTokens: 7, truncated: [] });
  });

  it('runs every method', async () => {
    const harness = createHarness();
    const context = harness.contextOf();
    const inputs = inputsOf('ab');
    const { sparse } = await harness.run({ method: 'embed/sparse', inputs, ...options }, context);
    const { matrices } = await harness.run({ method: 'embed/multi', inputs, ...options }, context);
    const { order, rawScores, queryRows } = await harness.run(reranking('a', 'abc'), context);
    expect([sparse.length, matrices.length]).toEqual([1, 1]);
    expect({ order, rawScores, queryRows }).toEqual({ order: [1, 0], rawScores: [5, 7], queryRows: null });
    expect(harness.records.map(({ method }) => method)).toEqual(['embed/sparse', 'embed/multi', 'rerank']);
  });

  it('is counted once, under a method of RCP, however it ends', async () => {
    const harness = createHarness();
    await harness.run(embedding('a'), harness.contextOf());
    await refusalOf(harness, embedding('a', 'b', 'c', 'd', 'e'));
    await refusalOf(harness, { method: 'hidden', inputs: inputsOf('a'), ...options, model: 'nope' });
    const records = harness.records.map(({ method, outcome, transport }) => ({ method, outcome, transport }));
    expect(records).toEqual([
      { method: 'embed', outcome: 'ok', transport: 'http' },
      { method: 'embed', outcome: 'invalidParams', transport: 'http' },
      { method: 'embed', outcome: 'unsupportedOption', transport: 'http' },
    ]);
  });

  it('says what it spent where, also when it failed', async () => {
    const harness = createHarness();
    const spent: CallTimes[] = [];
    await harness.run(embedding('a'), harness.contextOf(), (times) => spent.push(times));
    const failing = harness.run({ ...embedding('a'), model: 'nope' }, harness.contextOf(), (times) =>
      spent.push(times),
    );
    await expect(failing).rejects.toThrow('model');
    expect(spent.map(({ tokenizeMs }) => tokenizeMs === null)).toEqual([false, true]);
  });

  it.each([
    ['too many inputs', embedding('a', 'b', 'c', 'd', 'e'), 'invalidParams', { field: 'input', limit: 4, received: 5 }],
    ['too many passages', reranking('a', 'b', 'c', 'd', 'e'), 'invalidParams', { field: 'documents', limit: 4 }],
    ['another model', { ...embedding('a'), model: 'sparse' }, 'unsupportedOption', { field: 'model' }],
    ['another reranker', { ...reranking('a'), model: 'dense' }, 'unsupportedOption', { field: 'model' }],
    ['a cut that is not allowed', { ...embedding('a'), dimensions: 2 }, 'unsupportedOption', { field: 'dimensions' }],
    ['a text that is too long', { ...embedding('a'.repeat(20)), truncation: 'refuse' }, 'invalidParams', { limit: 16 }],
  ] as const)('with %s is refused, and the member named', async (_, request, errorName, data) => {
    const harness = createHarness();
    const error = await refusalOf(harness, request);
    expect(error.errorName).toBe(errorName);
    expect(error.data).toMatchObject(data);
  });

  it('needs the capability', async () => {
    const harness = createHarness({ ...allTasks(), embed: [] });
    expect((await refusalOf(harness, embedding('a'))).errorName).toBe('capabilityNotAdvertised');
    const hidden = { method: 'hidden', inputs: inputsOf('a'), ...options } as const;
    expect((await refusalOf(harness, hidden)).errorName).toBe('capabilityNotAdvertised');
  });

  it('is refused once the server is on its way out, after what is wrong with it', async () => {
    const harness = createHarness();
    harness.drain();
    expect(await refusalOf(harness, embedding('a'))).toMatchObject({
      errorName: 'unavailable',
      data: { retryAfterMs: 1000 },
    });
    expect((await refusalOf(harness, { ...embedding('a'), model: 'nope' })).errorName).toBe('unsupportedOption');
  });

  it('ends at the deadline of the server', async () => {
    const harness = createHarness();
    harness.scheduler.hang();
    const ended = refusalOf(harness, embedding('a'));
    await harness.clock.advance(5000);
    expect((await ended).errorName).toBe('deadlineExceeded');
  });

  it('ends when the caller has left, before and while it runs', async () => {
    const harness = createHarness();
    harness.scheduler.hang();
    const caller = new AbortController();
    const ended = refusalOf(harness, embedding('a'), { signal: caller.signal });
    caller.abort();
    expect((await ended).errorName).toBe('cancelled');
    expect((await refusalOf(harness, embedding('a'), { signal: caller.signal })).errorName).toBe('cancelled');
  });

  it('takes of the share of its caller in the queue', async () => {
    const harness = createHarness();
    const limits = { requestsPerSecond: 0, requestBurst: 0, queuedTokens: 1 };
    const quota = createCallerQuota(limits, { clock: harness.clock, onRefused: () => undefined });
    quota.claimTokens({ items: 1, tokens: 1 }, () => 0);
    expect((await refusalOf(harness, embedding('a'), { quota })).errorName).toBe('overloaded');
  });

  it('throws no bug: it is recorded, and becomes internal without detail', async () => {
    const scheduler = createFakeScheduler(() => {
      throw new TypeError('sesame');
    });
    const harness = createHarness(allTasks(), scheduler);
    const error = await refusalOf(harness, embedding('a'));
    expect(error).toMatchObject({ errorName: 'internal', message: 'The server failed' });
    expect(harness.records.map(({ bug }) => bug)).toEqual([new TypeError('sesame')]);
  });

  it('puts one thing and a query before a list, unless it says otherwise', async () => {
    const harness = createHarness();
    const context = harness.contextOf();
    await harness.run(embedding('a'), context);
    await harness.run(embedding('a', 'b'), context);
    await harness.run({ ...embedding('a', 'b'), kind: 'query' }, context);
    await harness.run({ ...embedding('a'), lane: 'bulk' }, context);
    await harness.run(reranking('a', 'b'), context);
    expect(harness.scheduler.jobs.map(({ lane }) => lane)).toEqual([
      'interactive',
      'bulk',
      'interactive',
      'bulk',
      'interactive',
    ]);
  });
});
