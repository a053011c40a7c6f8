import { describe, expect, it } from 'vitest';
import { ServiceError, type ErrorName } from '../../../../src/errors.ts';
import { teiFamily } from '../../../../src/http/compat/tei.ts';
import { vectorFactsOf } from '../../../../src/task/vector-facts.ts';
import { callTei, denseModel, termsModel, type Results } from './tei-call.ts';

const vectors = [Float32Array.of(0.1, 0, -0.5, 1), Float32Array.of(1, 0, 0, 0), Float32Array.of(0, 1, 0, 0)];
const matrix = { values: Float32Array.of(1, 2, 3, 4, 3, 4, 5, 8), dimension: 4 };
const results: Results = {
  embed: ({ inputs }) => ({ vectors: inputs.values.map((_, index) => vectors[index % 3]), dimension: 4 }),
  'embed/sparse': ({ inputs }) => ({
    sparse: inputs.values.map(() => ({ indices: Int32Array.of(3, 70), values: Float32Array.of(0.25, 1.1) })),
  }),
  hidden: ({ inputs }) => ({ matrices: inputs.values.map(() => matrix), dimension: 4 }),
  rerank: () => ({ scores: [0.2, 0.9, 0.5], rawScores: [-1, 2, 0], order: [1, 2, 0], queryRows: null }),
};
const withPrompts = {
  ...denseModel,
  vectors: {
    ...denseModel.vectors,
    prompts: { query: 'query: ', document: '', unspecified: 'text: ' },
    namedPrompts: { query: 'query: ', STS: '', 'Retrieval-query': 'find: ' },
  },
};

describe('embed', () => {
  it('gives one list of numbers for each input, in the digits that read back equal', async () => {
    const { status, json } = await callTei('/embed', { inputs: ['a', 'b'] }, { results });
    expect(status).toBe(200);
    expect(json).toEqual([
      [0.1, 0, -0.5, 1],
      [1, 0, 0, 0],
    ]);
  });

  it('takes a text alone, and refuses what is too long unless told to cut it', async () => {
    const { json, requests } = await callTei('/embed', { inputs: 'a', unknown: 1, truncate: null }, { results });
    expect(json).toHaveLength(1);
    expect(requests).toEqual([
      {
        method: 'embed',
        inputs: { values: ['a'], field: 'inputs' },
        kind: null,
        truncation: 'refuse',
        model: null,
        lane: null,
        dimensions: null,
      },
    ]);
  });

  it.each([
    [{ truncate: true }, 'keepStart'],
    [{ truncate: true, truncation_direction: 'Right' }, 'keepStart'],
    [{ truncate: true, truncation_direction: 'left' }, 'keepEnd'],
    [{ truncate: true, truncation_direction: 'Left' }, 'keepEnd'],
    [{ truncation_direction: 'Left' }, 'refuse'],
  ])('with %j a text that is too long is treated as %s', async (options, truncation) => {
    const { requests } = await callTei('/embed', { inputs: 'a', ...options }, { results });
    expect(requests[0]).toMatchObject({ truncation });
  });

  it('takes ids, of one text or among texts, and leaves out what /tokenize puts around a text', async () => {
    const alone = await callTei('/embed', { inputs: [101, 7, 101, 8, 102] }, { results });
    expect(alone.requests[0]).toMatchObject({ inputs: { values: [[7, 101, 8]] } });
    const among = await callTei('/embed', { inputs: [[101, 102], 'a', [7]] }, { results });
    expect(among.requests[0]).toMatchObject({ inputs: { values: [[], 'a', [7]] } });
  });

  it.each([
    ['the text itself begins and ends with them', [101, 101, 7, 102, 102], [101, 7, 102]],
    ['they stand at one end only', [101, 7], [101, 7]],
    ['they stand at the wrong ends', [102, 7, 101], [102, 7, 101]],
    ['there is less than they are', [101], [101]],
  ])('of ids it leaves out nothing else where %s', async (_, inputs, expected) => {
    for (const path of ['/embed', '/embed_all']) {
      const { requests } = await callTei(path, { inputs }, { results });
      expect(requests[0]).toMatchObject({ inputs: { values: [expected] } });
    }
  });

  it('what is left out is what the model that runs puts around a text', async () => {
    const models = [denseModel, termsModel];
    const inputs = [
      [201, 7, 202],
      [101, 7, 102],
    ];
    const sparse = await callTei('/embed_sparse', { inputs }, { results, models });
    expect(sparse.requests[0]).toMatchObject({ inputs: { values: [[7], [101, 7, 102]] } });
    const dense = await callTei('/embed', { inputs }, { results, models });
    expect(dense.requests[0]).toMatchObject({ inputs: { values: [[201, 7, 202], [7]] } });
  });

  it('gives vectors that have no unit length where the rows tell them', async () => {
    const { json, requests } = await callTei('/embed', { inputs: 'a', normalize: false }, { results });
    expect(requests.map(({ method }) => method)).toEqual(['hidden']);
    expect(json).toEqual([[2, 3, 4, 6]]);
  });

  it.each([
    ['cls', [1, 2, 3, 4]],
    ['lastToken', [3, 4, 5, 8]],
  ] as const)('pools by %s where the model does', async (plainPooling, expected) => {
    const model = { ...denseModel, vectors: { ...denseModel.vectors, plainPooling } };
    const { json } = await callTei('/embed', { inputs: 'a', normalize: false }, { results, models: [model] });
    expect(json).toEqual([expected]);
  });

  it('refuses vectors without unit length where more than a pooling makes them', async () => {
    const model = { ...denseModel, vectors: { ...denseModel.vectors, plainPooling: null } };
    const options = { results, models: [model] };
    const { status, json, requests } = await callTei('/embed', { inputs: 'a', normalize: false }, options);
    expect({ status, requests }).toEqual({ status: 422, requests: [] });
    expect(json).toMatchObject({ error_type: 'Validation', error: expect.stringContaining('normalize') as unknown });
  });

  it('leaves the vectors of a model without unit length as they are, and scales them where asked', async () => {
    const model = { ...denseModel, vectors: { ...denseModel.vectors, isNormalized: false } };
    const options = { results: { embed: () => ({ vectors: [Float32Array.of(3, 4)] }) }, models: [model] };
    for (const normalize of [undefined, false]) {
      expect((await callTei('/embed', { inputs: 'a', normalize }, options)).json).toEqual([[3, 4]]);
    }
    expect((await callTei('/embed', { inputs: 'a', normalize: true }, options)).json).toEqual([[0.6, 0.8]]);
  });

  it.each(['/embed', '/embed_all', '/embed_sparse', '/similarity'])(
    '%s takes a prompt by exactly its name, and refuses any other with those that there are',
    async (path) => {
      const models = [{ ...withPrompts, methods: ['embed', 'embed/sparse'] as const }];
      const ask = (prompt_name: unknown) => {
        const similar = { inputs: { source_sentence: 'a', sentences: ['b'] }, parameters: { prompt_name } };
        return callTei(path, path === '/similarity' ? similar : { inputs: 'a', prompt_name }, { results, models });
      };
      const chosen = async (name: string | null) => {
        const [request] = (await ask(name)).requests;
        return request?.method === 'rerank' ? undefined : { kind: request?.kind, prompt: request?.prompt };
      };
      expect(await chosen(null)).toEqual({ kind: null, prompt: undefined });
      expect(await chosen('query')).toEqual({ kind: 'query', prompt: undefined });
      expect(await chosen('Retrieval-query')).toEqual({ kind: null, prompt: 'find: ' });
      expect(await chosen('STS')).toEqual({ kind: null, prompt: '' });
      for (const wrong of ['search_query', 'Query', 'document', '', 'toString', '__proto__']) {
        const { status, json, requests } = await ask(wrong);
        expect({ status, requests }).toEqual({ status: 422, requests: [] });
        const field = path === '/similarity' ? 'parameters.prompt_name' : 'prompt_name';
        expect(json).toEqual({
          error: `${field}: dense@1 has no prompt of this name; it has query, STS, Retrieval-query`,
          error_type: 'Validation',
        });
      }
    },
  );

  it('of very many prompts an error lists some', async () => {
    const namedPrompts = Object.fromEntries(Array.from({ length: 70 }, (_, index) => [`name${index}`, '']));
    const models = [{ ...denseModel, vectors: { ...denseModel.vectors, namedPrompts } }];
    const { json } = await callTei('/embed', { inputs: 'a', prompt_name: 'x' }, { results, models });
    expect(json).toMatchObject({ error: expect.stringMatching(/name63, and 6 more$/) as unknown });
  });
});

describe('the other vectors', () => {
  it('sparse vectors are lists of index and value', async () => {
    const { json } = await callTei('/embed_sparse', { inputs: 'a' }, { results });
    expect(json).toEqual([
      [
        { index: 3, value: 0.25 },
        { index: 70, value: 1.1 },
      ],
    ]);
  });

  it('all rows of a text are given as they come from the encoder', async () => {
    const { json } = await callTei('/embed_all', { inputs: ['a', 'b'] }, { results });
    const rows = [
      [1, 2, 3, 4],
      [3, 4, 5, 8],
    ];
    expect(json).toEqual([rows, rows]);
  });

  it("a method without a model is that service's backend error", async () => {
    const { status, json } = await callTei('/embed_sparse', { inputs: 'a' });
    expect({ status, json }).toMatchObject({ status: 424, json: { error_type: 'Backend' } });
  });
});

describe('rerank', () => {
  const body = { query: 'q', texts: ['a', 'b', 'c'] };

  it('gives scores, best first', async () => {
    const { json } = await callTei('/rerank', body, { results });
    expect(json).toEqual([
      { index: 1, score: 0.9 },
      { index: 2, score: 0.5 },
      { index: 0, score: 0.2 },
    ]);
  });

  it('gives logits and texts where asked', async () => {
    const { json } = await callTei('/rerank', { ...body, raw_scores: true, return_text: true }, { results });
    expect(json).toEqual([
      { index: 1, text: 'b', score: 2 },
      { index: 2, text: 'c', score: 0 },
      { index: 0, text: 'a', score: -1 },
    ]);
  });

  it('divides a sum of likenesses by the rows of the query, unless raw scores are asked for', async () => {
    const colbert: Results = { rerank: () => ({ scores: [8], rawScores: [8], order: [0], queryRows: 10 }) };
    const one = { query: 'q', texts: ['a'] };
    expect((await callTei('/rerank', one, { results: colbert })).json).toEqual([{ index: 0, score: 0.8 }]);
    const raw = await callTei('/rerank', { ...one, raw_scores: true }, { results: colbert });
    expect(raw.json).toEqual([{ index: 0, score: 8 }]);
  });
});

describe('similarity', () => {
  it('gives the cosine of each sentence with the source', async () => {
    const inputs = { source_sentence: 'a', sentences: ['b', 'c'] };
    const { json, requests } = await callTei('/similarity', { inputs, parameters: { truncate: true } }, { results });
    expect(requests).toMatchObject([{ truncation: 'keepStart', inputs: { values: ['b', 'c', 'a'] } }]);
    expect(json).toEqual([0, 0]);
    const same = await callTei(
      '/similarity',
      { inputs: { source_sentence: 'a', sentences: ['b', 'c', 'a'] } },
      { results },
    );
    // Vectors go round: the third sentence has another, the source the first again.
    expect(same.json).toEqual([1, expect.closeTo(0.0890871, 6), 0]);
  });

  it('names the source where it is the source that is refused', async () => {
    const tooLong: Results = {
      embed: ({ inputs: { field } }) => {
        throw new ServiceError('invalidParams', `${field}[1]: has 9 tokens, the limit is 4`, {
          field: `${field}[1]`,
          tokens: 9,
          limit: 4,
        });
      },
    };
    const inputs = { source_sentence: 'a', sentences: ['b'] };
    const { status, json } = await callTei('/similarity', { inputs }, { results: tooLong });
    expect(status).toBe(413);
    expect(json).toEqual({
      error: 'inputs.source_sentence: has 9 tokens, the limit is 4',
      error_type: 'Validation',
    });
  });
});

describe('tokens', () => {
  it('places are bytes, special tokens have none', async () => {
    const { json } = await callTei('/tokenize', { inputs: 'é 🙂 b' });
    expect(json).toEqual([
      [
        { id: 101, text: '[101]', special: true, start: null, stop: null },
        { id: 1, text: 'é', special: false, start: 0, stop: 2 },
        { id: 2, text: '🙂', special: false, start: 3, stop: 7 },
        { id: 3, text: 'b', special: false, start: 8, stop: 9 },
        { id: 102, text: '[102]', special: true, start: null, stop: null },
      ],
    ]);
  });

  it('special tokens can be left out, and the prompt of a name stands before the text', async () => {
    const body = { inputs: ['a'], add_special_tokens: false, prompt_name: 'query' };
    const named = await callTei('/tokenize', body, { models: [withPrompts] });
    expect(named.json).toMatchObject([[{ text: 'query:' }, { text: 'a', start: 7, stop: 8 }]]);
    const other = await callTei('/tokenize', { ...body, prompt_name: 'Retrieval-query' }, { models: [withPrompts] });
    expect(other.json).toMatchObject([[{ text: 'find:' }, { text: 'a' }]]);
    const usual = await callTei('/tokenize', { ...body, prompt_name: null }, { models: [withPrompts] });
    expect(usual.json).toMatchObject([[{ text: 'text:' }, { text: 'a' }]]);
  });

  it('are those of the model that `x-trivec.model` names, with its prompt', async () => {
    const models = [denseModel, { ...withPrompts, model: 'other@1', methods: ['embed/multi'] as const }];
    const body = { inputs: ['a'], add_special_tokens: false };
    expect((await callTei('/tokenize', body, { models })).json).toMatchObject([[{ text: 'a' }]]);
    const named = await callTei('/tokenize', { ...body, 'x-trivec': { model: 'other@1' } }, { models });
    expect(named.json).toMatchObject([[{ text: 'text:' }, { text: 'a' }]]);
    expect((await callTei('/decode', { ids: [1], 'x-trivec': { model: 7 } })).status).toBe(422);
  });

  it('decodes one list of ids or several', async () => {
    expect((await callTei('/decode', { ids: [1, 2] })).json).toEqual(['1-2']);
    const several = await callTei('/decode', { ids: [[1], [2, 3]], skip_special_tokens: false });
    expect(several.json).toEqual(['1 raw', '2-3 raw']);
  });
});

describe('the root', () => {
  it('does what the body is made for', async () => {
    const asked = async (body: unknown, models = [denseModel]) =>
      (await callTei('/', body, { results, models })).requests.map(({ method }) => method);
    expect(await asked({ inputs: 'a' })).toEqual(['embed']);
    expect(await asked({ inputs: { source_sentence: 'a', sentences: ['b'] } })).toEqual(['embed']);
    expect(await asked({ query: 'a', texts: ['b'] })).toEqual(['rerank']);
    expect(await asked({ inputs: 'a' }, [{ ...denseModel, methods: ['embed/sparse'] }])).toEqual(['embed/sparse']);
  });
});

describe('info', () => {
  it('describes the model that makes vectors, and the limits in force', async () => {
    const { json } = await callTei('/info', undefined);
    expect(json).toEqual({
      model_id: 'dense@1',
      model_sha: 'abc',
      model_dtype: 'float16',
      served_model_name: 'dense@1',
      model_type: { embedding: { pooling: 'mean' } },
      max_concurrent_requests: 16,
      max_input_length: 256,
      max_batch_tokens: 64,
      max_batch_requests: 8,
      max_client_batch_size: 4,
      auto_truncate: false,
      tokenization_workers: 1,
      version: '1.2.3',
      sha: null,
      docker_label: null,
    });
  });

  it.each([
    [['embed/sparse'] as const, { embedding: { pooling: 'splade' } }],
    [['rerank'] as const, { reranker: { id2label: { 0: 'LABEL_0' }, label2id: { LABEL_0: 0 } } }],
  ])('says of a server of %j what it is for', async (methods, model_type) => {
    const { json } = await callTei('/info', undefined, { models: [{ ...denseModel, methods }] });
    expect(json).toMatchObject({ model_type });
  });
});

const many = (count: number) => Array.from({ length: count }, () => 'secret');
const similar = (sentences: unknown, source: unknown = 'secret') => ({
  inputs: { source_sentence: source, sentences },
});

describe('what is refused', () => {
  it.each([
    ['/embed', undefined, 422, 'inputs'],
    ['/embed', [], 422, 'body'],
    ['/embed', { inputs: null }, 422, 'inputs'],
    ['/embed', { inputs: 7 }, 422, 'inputs'],
    ['/embed', { inputs: {} }, 422, 'inputs'],
    ['/embed', { inputs: ['secret', {}] }, 422, 'inputs[1]'],
    ['/embed', { inputs: ['secret', [1, 'x']] }, 422, 'inputs[1][1]'],
    ['/embed', { inputs: [1, -1] }, 422, 'inputs[1]'],
    ['/embed', { inputs: [1.5] }, 422, 'inputs[0]'],
    ['/embed', { inputs: [] }, 400, 'inputs'],
    ['/embed', { inputs: '' }, 400, 'inputs'],
    ['/embed', { inputs: ['secret', ''] }, 400, 'inputs[1]'],
    ['/embed', { inputs: [[]] }, 400, 'inputs[0]'],
    ['/embed', { inputs: many(5) }, 413, 'inputs'],
    ['/embed', { inputs: 'secret', truncate: 'yes' }, 422, 'truncate'],
    ['/embed', { inputs: 'secret', truncation_direction: 'up' }, 422, 'truncation_direction'],
    ['/embed', { inputs: 'secret', truncation_direction: 1 }, 422, 'truncation_direction'],
    ['/embed', { inputs: 'secret', normalize: 1 }, 422, 'normalize'],
    ['/embed', { inputs: 'secret', normalize: false, dimensions: 2 }, 422, 'normalize'],
    ['/embed', { inputs: 'secret', dimensions: 0 }, 422, 'dimensions'],
    ['/embed', { inputs: 'secret', dimensions: 5 }, 422, 'dimensions'],
    ['/embed', { inputs: 'secret', dimensions: '2' }, 422, 'dimensions'],
    ['/embed', { inputs: 'secret', prompt_name: 3 }, 422, 'prompt_name'],
    ['/embed', { inputs: 'secret', prompt_name: 'query' }, 422, 'prompt_name'],
    ['/embed', { inputs: 'secret', dimensions: 1e30 }, 422, 'dimensions'],
    ['/embed_sparse', { inputs: [] }, 400, 'inputs'],
    ['/embed_all', { inputs: false }, 422, 'inputs'],
    ['/', { inputs: [] }, 400, 'inputs'],
    ['/rerank', { texts: ['secret'] }, 422, 'query'],
    ['/rerank', { query: ['secret'], texts: ['secret'] }, 422, 'query'],
    ['/rerank', { query: 'secret' }, 422, 'texts'],
    ['/rerank', { query: 'secret', texts: 'secret' }, 422, 'texts'],
    ['/rerank', { query: 'secret', texts: ['secret', 1] }, 422, 'texts[1]'],
    ['/rerank', { query: 'secret', texts: [] }, 400, 'texts'],
    ['/rerank', { query: '', texts: ['secret', ''] }, 400, 'texts[1]'],
    ['/rerank', { query: 'secret', texts: many(4) }, 413, 'texts'],
    ['/rerank', { query: 'secret', texts: ['secret'], raw_scores: 1 }, 422, 'raw_scores'],
    ['/rerank', { query: 'secret', texts: ['secret'], return_text: 'no' }, 422, 'return_text'],
    ['/similarity', { inputs: 'secret' }, 422, 'inputs'],
    ['/similarity', similar('secret'), 422, 'inputs.sentences'],
    ['/similarity', similar([1]), 422, 'inputs.sentences[0]'],
    ['/similarity', similar(['secret'], 1), 422, 'inputs.source_sentence'],
    ['/similarity', similar([]), 400, 'inputs.sentences'],
    ['/similarity', similar(many(4)), 413, 'inputs.sentences'],
    ['/similarity', { ...similar(['secret']), parameters: { truncate: 1 } }, 422, 'parameters.truncate'],
    ['/tokenize', { inputs: [1] }, 422, 'inputs[0]'],
    ['/tokenize', { inputs: [] }, 400, 'inputs'],
    ['/tokenize', { inputs: many(5) }, 413, 'inputs'],
    ['/tokenize', { inputs: 'secret', add_special_tokens: 0 }, 422, 'add_special_tokens'],
    ['/decode', {}, 422, 'ids'],
    ['/decode', { ids: 1 }, 422, 'ids'],
    ['/decode', { ids: [] }, 400, 'ids'],
    ['/decode', { ids: [[]] }, 400, 'ids[0]'],
    ['/decode', { ids: ['secret'] }, 422, 'ids[0]'],
    ['/decode', { ids: [[1], [2], [3], [4], [5]] }, 413, 'ids'],
    ['/decode', { ids: [1], skip_special_tokens: 'x' }, 422, 'skip_special_tokens'],
  ])('%s with %j is %i and names %s', async (path, body, expected, field) => {
    const { status, json, requests } = await callTei(path, body, { results });
    expect({ status, requests }).toEqual({ status: expected, requests: [] });
    expect(json).toEqual({
      error: expect.stringContaining(`${field}: `) as unknown,
      error_type: status === 400 ? 'Empty' : 'Validation',
    });
    expect(JSON.stringify(json)).not.toContain('secret');
  });

  it('dimensions beyond the model are told as they were sent', async () => {
    const { json } = await callTei('/embed', { inputs: 'a', dimensions: 1e30 }, { results });
    expect(json).toMatchObject({ error: 'dimensions: is 1e+30, the model has 4' });
  });

  it.each([
    ['overloaded', 429, 'Overloaded', '2'],
    ['unavailable', 503, 'Unhealthy', '2'],
    ['internal', 424, 'Backend', undefined],
    ['deadlineExceeded', 504, 'Backend', undefined],
    ['tooLarge', 413, 'Validation', undefined],
    ['unauthorized', 401, 'Unauthorized', undefined],
    ['parse', 400, 'Validation', undefined],
  ] as const)('%s is %i %s', (name: ErrorName, status, errorType, retryAfter) => {
    const answer = teiFamily.errorAnswer(new ServiceError(name, 'why', { retryAfterMs: 1200 }));
    expect(answer.status).toBe(status);
    expect(JSON.parse(String(answer.body))).toEqual({ error: 'why', error_type: errorType });
    expect(answer.headers?.['Retry-After']).toBe(retryAfter);
  });

  it('an id among the inputs that is no token is no matter of size', () => {
    const error = new ServiceError('invalidParams', 'no', { field: 'inputs[3]', limit: 9, received: 12 });
    expect(teiFamily.errorAnswer(error).status).toBe(422);
  });

  it('an id that is no token is an error of the tokenizer', () => {
    const error = new ServiceError('invalidParams', 'ids[0]: no', { field: 'ids[0]', limit: 9, received: 12 });
    const { status, body } = teiFamily.errorAnswer(error);
    expect({ status, body: JSON.parse(String(body)) as unknown }).toEqual({
      status: 422,
      body: { error: 'ids[0]: no', error_type: 'Tokenizer' },
    });
  });
});

describe("what is known of a model's vectors", () => {
  const prompts = { query: '', document: '', unspecified: '' };
  const facts = { prompts, isNormalized: true, includesPrompt: true, hiddenOutput: 'rows' };
  const pool = { kind: 'pool', modes: ['mean'] } as const;
  const tensor = { path: '/nowhere', name: 'w' };
  const layerNorm = { kind: 'layerNorm', width: 2, weight: tensor, bias: tensor } as const;

  it.each([
    ['a pooling and unit length', [pool, { kind: 'normalize' } as const], true, 'mean'],
    ['another step between them', [pool, layerNorm, { kind: 'normalize' } as const], true, null],
    ['two poolings', [{ kind: 'pool', modes: ['cls', 'mean'] } as const], true, null],
    ['a pooling that is not done here', [{ kind: 'pool', modes: ['max'] } as const], true, null],
    ['a prompt that is not pooled', [pool], false, null],
    ['no step at all', [], true, null],
  ])('%s', (_, vectorSteps, includesPrompt, expected) => {
    const { plainPooling } = vectorFactsOf({ ...facts, vectorSteps, includesPrompt });
    expect(plainPooling).toBe(expected);
  });

  it('a graph that shows no rows', () => {
    const { hiddenOutput, ...others } = { ...facts, vectorSteps: [pool] };
    expect(vectorFactsOf({ ...others, hiddenOutput }).plainPooling).toBe('mean');
    expect(vectorFactsOf(others).plainPooling).toBeNull();
  });
});
