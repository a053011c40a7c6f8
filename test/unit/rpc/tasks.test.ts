import { describe, expect, it } from 'vitest';
import { plainSplade } from '../../../src/model/sparse-rules.ts';
import { plainTokenRows } from '../../../src/model/token-row-rules.ts';
import { createServed } from '../task/fakes.ts';
import { createHarness, fittingScheduler, allTasks } from './harness.ts';

const vectorMethods = ['embed', 'embed/sparse', 'embed/multi'];
const listOf: Record<string, string> = { embed: 'vectors', 'embed/sparse': 'sparse', 'embed/multi': 'matrices' };

describe.each(vectorMethods)('the method %s', (method) => {
  const list = listOf[method] ?? '';

  it('takes inputs and texts alike', async () => {
    const { call } = createHarness();
    const [a, b] = [await call(method, { inputs: ['a'] }), await call(method, { texts: ['a'] })];
    expect(a.result).toEqual(b.result);
    expect(a.result?.[list]).toHaveLength(1);
  });

  it('gives an empty list for an empty list, without a run', async () => {
    const { call, scheduler } = createHarness();
    const { result } = await call(method, { inputs: [], encoding: method === 'embed/sparse' ? null : 'f32-base64' });
    expect(result?.[list]).toEqual([]);
    expect(result?.['usage']).toMatchObject({ inputTokens: 0, truncated: [] });
    expect(scheduler.loads).toEqual([]);
  });

  it('ignores what it does not know, at every level', async () => {
    const { call } = createHarness();
    const plain = await call(method, { inputs: ['a'] });
    const noise = {
      zz: { a: [1] },
      'x-acme': 1,
      model: 'nope',
      k: 5,
      'x-trivec': { zz: 1 },
      _meta: { traceId: 't', q: null },
    };
    expect(await call(method, { inputs: ['a'], ...noise })).toEqual(plain);
    expect(await call(method, { inputs: ['a'], _meta: 5, kind: null, encoding: null, 'x-trivec': null })).toEqual(
      plain,
    );
  });

  it.each([
    [{ inputs: ['a'] }, 'interactive'],
    [{ inputs: ['a', 'b'], kind: 'query' }, 'interactive'],
    [{ inputs: ['a', 'b'] }, 'bulk'],
    [{ inputs: ['a', 'b'], kind: 'document' }, 'bulk'],
    [{ inputs: ['a'], 'x-trivec': { priority: 'bulk' } }, 'bulk'],
    [{ inputs: ['a', 'b'], 'x-trivec': { priority: 'interactive' } }, 'interactive'],
  ])('runs %j in the lane %s', async (params, lane) => {
    const { call, scheduler } = createHarness();
    await call(method, params);
    expect(scheduler.jobs.map((job) => job.lane)).toEqual([lane]);
  });

  it('tells how long it took and where it ran', async () => {
    const { result } = await createHarness().call(method, { inputs: ['a', 'x'.repeat(20)] });
    expect(result?.['usage']).toEqual({
      inputTokens: 3 + 16,
      truncated: [1],
      latencyMs: 0,
      queueMs: 2,
      computeMs: 4,
      device: 'cpu:0',
    });
  });
});

describe('the method rerank', () => {
  const passages = ['aa', 'a', 'aaaa'];

  it('takes passages and documents alike, passages first', async () => {
    const { call } = createHarness();
    const a = await call('rerank', { query: 'q', passages });
    expect(await call('rerank', { query: 'q', documents: passages })).toEqual(a);
    expect(await call('rerank', { query: 'q', passages, documents: ['x'] })).toEqual(a);
    expect(await call('rerank', { query: 'q', passages: null, documents: passages })).toEqual(a);
  });

  it.each([
    [null, [2, 0, 1]],
    [1, [2]],
    [2.0, [2, 0]],
    [99, [2, 0, 1]],
  ])('with topN %j orders %j and keeps every score', async (topN, order) => {
    const { result } = await createHarness().call('rerank', { query: 'q', passages, topN });
    expect(result?.['order']).toEqual(order);
    expect((result?.['results'] as { index: number }[]).map(({ index }) => index)).toEqual(order);
    expect(result?.['scores']).toHaveLength(3);
    expect(result?.['usage']).toMatchObject({ candidates: 3, reranked: 3 });
  });

  it('gives empty lists for no passages', async () => {
    const { call, scheduler } = createHarness();
    const { result } = await call('rerank', { query: 'q', passages: [] });
    expect(result).toMatchObject({ scores: [], order: [], results: [] });
    expect(scheduler.loads).toEqual([]);
  });

  it.each([
    [{}, 'pairs'],
    [{ method: 'cross-encoder' }, 'pairs'],
    [{ method: 'colbert' }, 'tokens'],
    [{ model: 'tokens' }, 'tokens'],
    [{ method: 'colbert', model: 'tokens' }, 'tokens'],
  ])('with %j runs the model %s', async (choice, modelId) => {
    const { call, scheduler } = createHarness();
    await call('rerank', { query: 'q', passages, ...choice });
    expect(scheduler.jobs.every(({ key }) => key.modelId === modelId)).toBe(true);
  });

  it.each([
    [{ method: 'llm' }, { option: 'llm', field: 'method', supported: ['cross-encoder', 'colbert'] }],
    [{ method: 'Colbert' }, { option: 'Colbert', field: 'method' }],
    [{ model: 'nope' }, { option: 'nope', field: 'model', supported: ['pairs', 'tokens'] }],
    [
      { method: 'colbert', model: 'pairs' },
      { option: 'pairs', field: 'model', supported: ['tokens'] },
    ],
  ])('refuses %j and says what is offered', async (choice, data) => {
    const { error } = await createHarness().call('rerank', { query: 'q', passages, ...choice });
    expect(error).toMatchObject({ code: -32005, data });
  });

  it('falls back to the default method only where the caller is not strict, and notes it', async () => {
    const { result } = await createHarness().call('rerank', { query: 'q', passages, method: 'llm', strict: false });
    expect(result?.['usage']).toMatchObject({ notes: ['method: cross-encoder was used instead'] });
  });

  it('goes first unless it says that it can wait', async () => {
    const { call, scheduler } = createHarness();
    await call('rerank', { query: 'q', passages });
    await call('rerank', { query: 'q', passages, 'x-trivec': { priority: 'bulk' } });
    expect(scheduler.jobs.map(({ lane }) => lane)).toEqual(['interactive', 'bulk']);
  });
});

describe('a generative reranker', () => {
  const yesNo = { yesId: 1, noId: 2, prefix: '', body: '{query}{document}', suffix: '', instruction: '' };
  const generative = { method: 'llm' as const, served: createServed({ modelId: 'judge', yesNo }) };
  const tasks = () => ({ ...allTasks(), rerankers: [...allTasks().rerankers, generative] });

  it('is offered as the method llm, and runs where it is asked for', async () => {
    const { call, scheduler } = createHarness(tasks());
    const { result: info } = await call('info');
    const methods = ['cross-encoder', 'colbert', 'llm'];
    expect(info?.['capabilities']).toMatchObject({ rerank: { methods, models: ['pairs', 'tokens', 'judge'] } });
    const { result } = await call('rerank', { query: 'q', passages: ['a', 'bc'], method: 'llm' });
    expect(result?.['order']).toEqual([1, 0]);
    expect(scheduler.jobs.map(({ key }) => key)).toEqual([{ modelId: 'judge', head: 'logit', queryRows: null }]);
  });
});

describe('info on late interaction', () => {
  it('says how long a query may be where that is less than the limit', async () => {
    const tokenRows = { ...plainTokenRows, maxQueryTokens: 8 };
    const served = createServed({ modelId: 'short', tokenRows });
    const tasks = { ...allTasks(), multiVector: [served], rerankers: [{ method: 'colbert' as const, served }] };
    const { result } = await createHarness(tasks).call('info');
    const about = { id: 'short', maxInputTokens: 16, maxQueryTokens: 8 };
    expect(result?.['x-trivec']).toMatchObject({ models: { multiVector: [about], rerank: [about] } });
    const plain = await createHarness().call('info');
    expect(JSON.stringify(plain.result)).not.toContain('maxQueryTokens');
  });
});

describe('info on sparse vectors', () => {
  it('says how many terms they have at most, and how long a looked-up query may be, where the model states it', async () => {
    const limited = createServed({ modelId: 'few', sparse: { ...plainSplade, maxTerms: 64, maxQueryTokens: 9 } });
    const open = createServed({ modelId: 'all', sparse: plainSplade });
    const { result } = await createHarness({ ...allTasks(), sparseEmbed: [limited, open] }).call('info');
    const models = (result?.['x-trivec'] as { readonly models: Record<string, unknown> }).models;
    expect(models['sparseEmbed']).toEqual([
      { id: 'few', identity: 'few@r', maxInputTokens: 16, maxTerms: 64, maxQueryTokens: 9 },
      { id: 'all', identity: 'all@r', maxInputTokens: 16 },
    ]);
  });
});

describe('options of embed', () => {
  it('encoding falls back to json only where the caller is not strict, and notes it', async () => {
    const { call } = createHarness();
    const { result } = await call('embed', { inputs: ['a'], encoding: 'x', strict: false });
    expect(result).toMatchObject({
      vectors: [[97, 0, 0, 0]],
      encoding: 'json',
      usage: { notes: ['encoding: json was used instead'] },
    });
    expect((await call('embed', { inputs: ['a'], encoding: 'f16-base64' })).error).toMatchObject({
      code: -32005,
      data: { option: 'f16-base64', field: 'encoding' },
    });
  });

  it('truncate: false refuses what is too long with its tokens and the limit', async () => {
    const { call, scheduler } = createHarness();
    const params = { inputs: ['a', 'x'.repeat(20)], 'x-trivec': { truncate: false } };
    expect((await call('embed', params)).error).toMatchObject({
      code: -32602,
      data: { field: 'inputs[1]', tokens: 22, limit: 16 },
    });
    expect(scheduler.jobs).toEqual([]);
  });

  it('output int8 gives integers under the unpacked dimension', async () => {
    const { call } = createHarness();
    const { result } = await call('embed', { inputs: ['a'], 'x-trivec': { output: 'ubinary' } });
    expect(result).toMatchObject({ vectors: [[128]], dimension: 4 });
  });
});

describe('an answer of embed/multi that could be too large', () => {
  it('is refused before any run', async () => {
    const tasks = allTasks();
    const scheduler = fittingScheduler();
    const [narrow] = tasks.multiVector;
    const wide = { ...narrow, manifest: { ...narrow?.manifest, hiddenSize: 100_000, rowDimension: 100_000 } } as never;
    const { call } = createHarness({ ...tasks, multiVector: [wide] }, scheduler);
    expect((await call('embed/multi', { inputs: ['a'] })).error).toMatchObject({
      code: -32013,
      data: { limit: 1_000_000, retryable: false },
    });
    expect(scheduler.jobs).toEqual([]);
  });
});

describe('x-trivec.model', () => {
  const firstOf = async (params: object) => {
    const scheduler = fittingScheduler();
    const { call } = createHarness(allTasks(), scheduler);
    const { error } = await call('embed', { inputs: ['a'], ...params });
    return error ?? scheduler.jobs[0]?.key.modelId;
  };

  it('names the model that runs; the first is the default', async () => {
    expect(await firstOf({})).toBe('dense');
    expect(await firstOf({ 'x-trivec': { model: null } })).toBe('dense');
    expect(await firstOf({ 'x-trivec': { model: 'dense-2' } })).toBe('dense-2');
  });

  it('that is not offered is an error that lists the ones that are', async () => {
    expect(await firstOf({ 'x-trivec': { model: '../dense' } })).toMatchObject({
      code: -32005,
      data: { option: '../dense', field: 'x-trivec.model', supported: ['dense', 'dense-2'] },
    });
    expect(await firstOf({ 'x-trivec': { model: 5 } })).toMatchObject({
      code: -32602,
      data: { field: 'x-trivec.model' },
    });
  });
});
