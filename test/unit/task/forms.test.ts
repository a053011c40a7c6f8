import { describe, expect, it } from 'vitest';
import type { ModelManifest } from '../../../src/model/manifest.ts';
import { plainTokenRows } from '../../../src/model/token-row-rules.ts';
import { embed } from '../../../src/task/embed.ts';
import { multiVector } from '../../../src/task/multi-vector.ts';
import { rerank } from '../../../src/task/rerank.ts';
import { openServedModel } from '../../../src/task/served-model.ts';
import { sparseEmbed } from '../../../src/task/sparse-embed.ts';
import type { TextTokenizer } from '../../../src/tokenize/tokenizer.ts';
import { loadQuietly } from '../tokenize/minilm.ts';
import { bertTemplate, byteLevelRoberta, wordPiece, writeModelFolder } from '../tokenize/tiny-tokenizers.ts';
import { contextOf, createFakeScheduler, createServed, rejectionOf } from './fakes.ts';

const maxTokens = 16;
type Definition = Parameters<typeof writeModelFolder>[0];

/** A model with a real tokenizer. */
async function serve(definition: Definition, manifest: Partial<ModelManifest> = {}) {
  const complete = createServed({ maxTokens, ...manifest }).manifest;
  const tokenizer: TextTokenizer = await loadQuietly(await writeModelFolder(definition), complete.maxTokens);
  return openServedModel(complete, tokenizer, 'm');
}

const inputs = (texts: readonly string[], kind: 'query' | 'document' | null = null) => ({
  texts,
  kind,
  field: 'inputs',
});
const roomy = { maxAnswerBytes: 1e9, maxRowBytes: 1 };
const itemsOf = (scheduler: ReturnType<typeof createFakeScheduler>) => scheduler.jobs.flatMap(({ items }) => items);

describe('a prompt that is left out of the pooling', () => {
  const prompts = { query: 'hello world ', document: '', unspecified: '' };

  it('is counted for dense vectors of its kind, and for nothing else', async () => {
    const served = await serve(wordPiece(bertTemplate), { prompts, includesPrompt: false });
    for (const [kind, expected] of [
      ['query', 3],
      ['document', undefined],
    ] as const) {
      const scheduler = createFakeScheduler();
      await embed(served, inputs(['a'], kind), null, contextOf(scheduler));
      expect(itemsOf(scheduler)[0]?.promptTokens).toBe(expected);
    }
    const scheduler = createFakeScheduler();
    await multiVector(served, inputs(['a'], 'query'), roomy, contextOf(scheduler));
    expect(itemsOf(scheduler)[0]).not.toHaveProperty('promptTokens');
  });

  it('is not counted where the pooling includes it', async () => {
    const scheduler = createFakeScheduler();
    await embed(await serve(wordPiece(bertTemplate), { prompts }), inputs(['a'], 'query'), null, contextOf(scheduler));
    expect(itemsOf(scheduler)[0]).not.toHaveProperty('promptTokens');
  });
});

describe('late interaction', () => {
  const rules = {
    ...plainTokenRows,
    documentSkipTokens: ['(', ')'],
    queryMarker: 'over',
    documentMarker: 'it',
    maxQueryTokens: 8,
    maxDocumentTokens: 10,
    expansionToken: '[PAD]',
  };
  const [over, it_] = [14, 15];
  const serveRows = (tokenRows: Partial<typeof rules> | object = {}) =>
    serve(wordPiece(bertTemplate), { tokenRows: { ...rules, ...tokenRows }, heads: ['rows', 'maxSim'] });

  it('marks and fills queries, marks documents and drops their skipped rows after the network', async () => {
    const served = await serveRows();
    const scheduler = createFakeScheduler();
    await multiVector(served, inputs(['a (b)'], 'query'), roomy, contextOf(scheduler));
    await multiVector(served, inputs(['a (b)'], 'document'), roomy, contextOf(scheduler));
    await multiVector(served, inputs(['a (b)'], null), roomy, contextOf(scheduler));
    const [query, document, unspecified] = itemsOf(scheduler);
    expect(query).toEqual({
      ids: Int32Array.of(2, over, 6, 11, 7, 12, 3, 0),
      typeIds: null,
      keptRows: null,
      attendedTokens: 7,
    });
    expect(document).toEqual({
      ids: Int32Array.of(2, it_, 6, 11, 7, 12, 3),
      typeIds: null,
      keptRows: Int32Array.of(0, 1, 2, 4, 6),
    });
    expect(unspecified).toEqual(document);
  });

  it('a document of skipped tokens alone keeps its special rows', async () => {
    const scheduler = createFakeScheduler();
    await multiVector(await serveRows(), inputs(['(((']), roomy, contextOf(scheduler));
    expect(itemsOf(scheduler)[0]?.keptRows).toEqual(Int32Array.of(0, 1, 5));
  });

  it('leaves out the first row of queries and documents where the model says so', async () => {
    const served = await serve(wordPiece(bertTemplate), { tokenRows: { ...plainTokenRows, keepsFirstRow: false } });
    for (const kind of ['query', 'document'] as const) {
      const scheduler = createFakeScheduler();
      await multiVector(served, inputs(['a'], kind), roomy, contextOf(scheduler));
      expect(itemsOf(scheduler)[0]?.keptRows).toEqual(Int32Array.of(1, 2));
    }
  });

  it('each kind has its own limit, which an error names', async () => {
    const served = await serveRows();
    const context = contextOf(createFakeScheduler(), { truncation: 'refuse' });
    const long = 'a '.repeat(30);
    for (const [kind, limit] of [
      ['query', 8],
      ['document', 10],
    ] as const) {
      const error = await rejectionOf(multiVector(served, inputs([long], kind), roomy, context));
      expect(error).toMatchObject({ data: { field: 'inputs[0]', tokens: 33, limit } });
    }
    const error = await rejectionOf(
      rerank(
        { method: 'colbert', served },
        { query: long, passages: ['a'], field: 'passages' },
        contextOf(createFakeScheduler()),
      ),
    );
    expect(error).toMatchObject({ errorName: 'invalidParams', data: { field: 'query', limit: 8 } });
  });

  it('reranks with the forms of query and document', async () => {
    const scheduler = createFakeScheduler(() => ({ values: Float32Array.of(1), indices: null }));
    const input = { query: 'a', passages: ['(b', ''], field: 'passages' };
    const { usage } = await rerank({ method: 'colbert', served: await serveRows() }, input, contextOf(scheduler));
    expect(scheduler.jobs.map(({ items }) => items.map(({ ids, keptRows }) => [[...ids], keptRows]))).toEqual([
      [[[2, over, 6, 3, 0, 0, 0, 0], null]],
      [
        [[2, it_, 11, 7, 3], Int32Array.of(0, 1, 3, 4)],
        [[2, it_, 3], null],
      ],
    ]);
    expect(usage.inputTokens).toBe(8 + 5 + 3);
    expect(scheduler.loads).toEqual([{ items: 3, tokens: 8 + 3 + 2 }]);
  });

  it('fills queries up to a least length, and cuts them at a greater one', async () => {
    const served = await serveRows({ queryMarker: null, minQueryTokens: 5 });
    const scheduler = createFakeScheduler();
    const { usage } = await multiVector(
      served,
      inputs(['a', 'a b a b', 'a '.repeat(9)], 'query'),
      roomy,
      contextOf(scheduler),
    );
    expect(itemsOf(scheduler).map(({ ids, attendedTokens }) => [[...ids], attendedTokens])).toEqual([
      [[2, 6, 3, 0, 0], 3],
      [[2, 6, 7, 6, 7, 3], undefined],
      [[2, 6, 6, 6, 6, 6, 6, 3], undefined],
    ]);
    expect(usage).toMatchObject({ inputTokens: 5 + 6 + 8, truncated: [2] });
    expect(scheduler.loads).toEqual([{ items: 3, tokens: 5 + 5 + 8 }]);
    const attended = createFakeScheduler();
    const input = { query: 'a', passages: ['a'], field: 'passages' };
    const attending = await serveRows({ queryMarker: null, minQueryTokens: 5, isExpansionAttended: true });
    await rerank({ method: 'colbert', served: attending }, input, contextOf(attended));
    expect(itemsOf(attended)[0]).toMatchObject({ ids: Int32Array.of(2, 6, 3, 0, 0) });
    expect(itemsOf(attended)[0]).not.toHaveProperty('attendedTokens');
  });

  it('leaves out skipped tokens of queries only where the model says so', async () => {
    const served = await serveRows({ documentSkipTokens: [], querySkipTokens: ['('], queryMarker: null });
    const keptOf = async (kind: 'query' | 'document') => {
      const scheduler = createFakeScheduler();
      await multiVector(served, inputs(['(b'], kind), roomy, contextOf(scheduler));
      return itemsOf(scheduler)[0]?.keptRows;
    };
    expect(await keptOf('query')).toEqual(Int32Array.of(0, 2, 3, 4, 5, 6, 7));
    expect(await keptOf('document')).toBeNull();
  });

  it('divides MaxSim by the number of query rows where the model says so', async () => {
    const scheduler = createFakeScheduler((_item, { key }) => ({
      values: key.head === 'maxSim' ? Float32Array.of(6) : new Float32Array(3 * 4),
      indices: null,
    }));
    const input = { query: 'a', passages: ['b'], field: 'passages' };
    const scoresOf = async (isMaxSimAveraged: boolean) =>
      (await rerank({ method: 'colbert', served: await serveRows({ isMaxSimAveraged }) }, input, contextOf(scheduler)))
        .scores;
    expect(await scoresOf(true)).toEqual([2]);
    expect(await scoresOf(false)).toEqual([6]);
  });

  it('a marker that the vocabulary lacks, or a limit without room, ends the start', async () => {
    await expect(serveRows({ queryMarker: '[Q] ' })).rejects.toMatchObject({
      name: 'ConfigurationError',
      problems: ['m: its vocabulary lacks the token "[Q] "'],
    });
    await expect(serveRows({ expansionToken: '<mask>' })).rejects.toMatchObject({ name: 'ConfigurationError' });
    await expect(serveRows({ maxDocumentTokens: 3 })).rejects.toMatchObject({
      problems: ['m: a limit of 3 tokens leaves no room for a text'],
    });
  });
});

describe('a generative reranker', () => {
  const yesNo = {
    yesId: 1,
    noId: 2,
    prefix: '<',
    body: '{query}|{document}',
    suffix: '>',
    instruction: '',
  };
  const serveGenerative = (more: Partial<ModelManifest> = {}) =>
    serve(byteLevelRoberta(), { yesNo, heads: ['logit'], ...more });
  const input = { query: 'q', passages: ['x', 'y'.repeat(30)], field: 'passages' };

  it('runs one text per passage through the logit head and gives sigmoid of it', async () => {
    const scheduler = createFakeScheduler((_item, _job, index) => ({
      values: Float32Array.of([2, -1][index] ?? 0),
      indices: null,
    }));
    const reranker = { method: 'llm' as const, served: await serveGenerative() };
    const { scores, order, usage } = await rerank(reranker, input, contextOf(scheduler));
    expect(scheduler.jobs.map(({ key }) => key)).toEqual([{ modelId: 'm', head: 'logit', queryRows: null }]);
    expect(itemsOf(scheduler).map(({ ids, typeIds }) => [ids.length, typeIds])).toEqual([
      [5, null],
      [16, null],
    ]);
    expect(scores[0]).toBeCloseTo(1 / (1 + Math.exp(-2)), 12);
    expect(order).toEqual([0, 1]);
    expect(usage).toMatchObject({ inputTokens: 21, truncated: [1] });
  });

  it('refuses what it may not cut, with the field of the passage', async () => {
    const scheduler = createFakeScheduler();
    const reranker = { method: 'llm' as const, served: await serveGenerative() };
    const error = await rejectionOf(rerank(reranker, input, contextOf(scheduler, { truncation: 'refuse' })));
    expect(error).toMatchObject({ data: { field: 'passages[1]', tokens: 34, limit: 16 } });
    expect(scheduler.jobs).toEqual([]);
    expect(scheduler.releaseCount()).toBe(1);
  });

  it('whose template leaves no room ends the start', async () => {
    await expect(serveGenerative({ yesNo: { ...yesNo, suffix: 'z'.repeat(20) } })).rejects.toMatchObject({
      name: 'ConfigurationError',
      problems: ['m: its template leaves no room for a passage in 16 tokens'],
    });
  });
});

describe('prompts of a cross-encoder', () => {
  it('come before the query and each passage where the model states them', async () => {
    const served = createServed({ prompts: { query: 'Q', document: 'D', unspecified: 'U' } });
    const scheduler = createFakeScheduler();
    await rerank(
      { method: 'cross-encoder', served },
      { query: 'q', passages: ['a'], field: 'p' },
      contextOf(scheduler),
    );
    expect(served.tokenizer.texts).toEqual(['Qq', 'Da']);
  });
});

describe('queries that are looked up', () => {
  const sparse = {
    form: 'terms',
    pooling: 'max',
    activation: 'relu',
    queryTermWeights: { path: '/nowhere.safetensors', name: 'weight' },
    maxQueryTokens: null,
    maxTerms: null,
  } as const;
  const served = async (limits: Partial<Record<'maxQueryTokens' | 'maxTerms', number>> = {}) => {
    const plain = await serve(wordPiece(bertTemplate));
    const queryTermWeights = new Float32Array(18).fill(0.5, 6, 7);
    queryTermWeights[4] = 2;
    return { ...plain, manifest: { ...plain.manifest, sparse: { ...sparse, ...limits } }, queryTermWeights };
  };

  it('run nothing, have no special tokens, and count each term once', async () => {
    const scheduler = createFakeScheduler();
    const progress: number[] = [];
    const context = contextOf(scheduler, { onProgress: (done) => progress.push(done) });
    const result = await sparseEmbed(await served(), inputs(['a hello a b', ''], 'query'), context);
    expect(result.sparse).toEqual([
      { indices: Int32Array.of(4, 6), values: Float32Array.of(2, 0.5) },
      { indices: new Int32Array(), values: new Float32Array() },
    ]);
    expect(result.usage).toEqual({ inputTokens: 4, truncated: [], queueMs: 0, computeMs: 0, device: null });
    expect(scheduler.loads).toEqual([]);
    expect(progress).toEqual([1, 2]);
  });

  it('may be longer than the model reads', async () => {
    const context = contextOf(createFakeScheduler(), { truncation: 'refuse' });
    const { usage } = await sparseEmbed(await served(), inputs(['a '.repeat(100)], 'query'), context);
    expect(usage).toMatchObject({ inputTokens: 100, truncated: [] });
  });

  it('are cut at the limit of their own tokenizer, which counts no special tokens', async () => {
    const limited = await served({ maxQueryTokens: 3 });
    const { sparse: terms, usage } = await sparseEmbed(
      limited,
      inputs(['a a a hello', 'a a a'], 'query'),
      contextOf(createFakeScheduler()),
    );
    expect(terms.map(({ indices }) => [...indices])).toEqual([[6], [6]]);
    expect(usage).toMatchObject({ inputTokens: 6, truncated: [0] });
    const strict = contextOf(createFakeScheduler(), { truncation: 'refuse' });
    const error = await rejectionOf(sparseEmbed(limited, inputs(['a a a hello'], 'query'), strict));
    expect(error).toMatchObject({ errorName: 'invalidParams', data: { field: 'inputs[0]', tokens: 4, limit: 3 } });
  });

  it('keep their heaviest terms, as documents do, where the model says how many', async () => {
    const limited = await served({ maxTerms: 1 });
    const query = await sparseEmbed(limited, inputs(['a hello'], 'query'), contextOf(createFakeScheduler()));
    expect(query.sparse).toEqual([{ indices: Int32Array.of(4), values: Float32Array.of(2) }]);
    const scheduler = createFakeScheduler(() => ({
      values: Float32Array.of(1, 3, 2),
      indices: Int32Array.of(5, 8, 9),
    }));
    const document = await sparseEmbed(limited, inputs(['a'], 'document'), contextOf(scheduler));
    expect(document.sparse).toEqual([{ indices: Int32Array.of(8), values: Float32Array.of(3) }]);
  });

  it('are only queries: documents and texts without a kind run', async () => {
    for (const kind of ['document', null] as const) {
      const scheduler = createFakeScheduler();
      await sparseEmbed(await served(), inputs(['a'], kind), contextOf(scheduler));
      expect(itemsOf(scheduler).map(({ ids }) => [...ids])).toEqual([[2, 6, 3]]);
    }
  });

  it('end with the reason of their abort', async () => {
    const reason = new Error('gone');
    const context = contextOf(createFakeScheduler(), { signal: AbortSignal.abort(reason) });
    await expect(sparseEmbed(await served(), inputs(['a'], 'query'), context)).rejects.toBe(reason);
  });
});

describe('texts that give no tokens', () => {
  const heads = ['dense', 'sparse', 'rows', 'logit', 'maxSim'] as const;
  const bare = () => serve(wordPiece(null), { heads });

  it('have a vector of zeros without a run, and keep their places among others', async () => {
    const scheduler = createFakeScheduler(() => ({ values: Float32Array.of(1, 0, 0, 0), indices: null }));
    const progress: number[] = [];
    const context = contextOf(scheduler, { onProgress: (done) => progress.push(done) });
    const { vectors, usage } = await embed(await bare(), inputs(['', 'a', ' ', 'b']), null, context);
    expect(vectors.map((vector) => [...vector])).toEqual([
      [0, 0, 0, 0],
      [1, 0, 0, 0],
      [0, 0, 0, 0],
      [1, 0, 0, 0],
    ]);
    expect(itemsOf(scheduler).map(({ ids }) => [...ids])).toEqual([[6], [7]]);
    expect([0, 1].map((index) => scheduler.jobs[0]?.fieldOf(index))).toEqual(['inputs[1]', 'inputs[3]']);
    expect(progress).toEqual([1, 2, 3, 4]);
    expect(usage.inputTokens).toBe(2);
  });

  it('alone need no device, and their usage is zero', async () => {
    const served = await bare();
    const scheduler = createFakeScheduler();
    const context = contextOf(scheduler);
    const dense = await embed(served, inputs(['']), null, context);
    expect(dense.vectors).toEqual([new Float32Array(4)]);
    const sparse = await sparseEmbed(served, inputs(['']), context);
    expect(sparse.sparse).toEqual([{ indices: new Int32Array(), values: new Float32Array() }]);
    const rows = await multiVector(served, inputs(['']), roomy, context);
    expect(rows.matrices).toEqual([{ values: new Float32Array(4), dimension: 4 }]);
    for (const { usage } of [dense, sparse, rows]) {
      expect(usage).toEqual({ inputTokens: 0, truncated: [], queueMs: 0, computeMs: 0, device: null });
    }
    expect(scheduler.jobs).toEqual([]);
    expect(scheduler.releaseCount()).toBe(3);
  });

  it('rank with 0 as passages, and give every passage 0 as a query', async () => {
    const served = await bare();
    const scheduler = createFakeScheduler((_item, { key }) => ({
      values: key.head === 'maxSim' ? Float32Array.of(3) : new Float32Array(4).fill(1),
      indices: null,
    }));
    const ranked = (query: string, method: 'colbert' | 'cross-encoder') =>
      rerank({ method, served }, { query, passages: ['', 'a'], field: 'passages' }, contextOf(scheduler));
    expect((await ranked('a', 'colbert')).scores).toEqual([0, 3]);
    await ranked('', 'colbert');
    expect(scheduler.jobs.at(-1)?.key.queryRows).toEqual({ values: new Float32Array(4), dimension: 4 });
    expect((await ranked('', 'cross-encoder')).scores[0]).toBe(0.5);
  });
});
