import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  arePythonClientsThere,
  asFloats,
  embedded,
  forms,
  query,
  runPythonClient,
  serveWithKeys,
  slowKeyOf,
  texts,
} from '../support/clients.ts';
import { requirement } from '../support/require.ts';
import type { Served } from '../support/served.ts';
import { decodeFloats, dot } from '../golden/golden-values.ts';

const clients = requirement(
  'clients',
  arePythonClientsThere,
  'no Python with the clients in .cache/clients or CLIENTS_PYTHON',
);

type Vectors = number[][];
/** Index and score, best first. */
type Ranking = [number, number][];
interface Refusal {
  readonly type?: string;
  readonly status: number;
  readonly message?: string;
}

describe.skipIf(clients.skip)(clients.title('clients from PyPI'), { timeout: 90_000 }, () => {
  let served: Served;
  let vectors: Float32Array[];
  let questions: Float32Array[];
  let order: number[];
  beforeAll(async () => {
    served = await serveWithKeys();
    vectors = await embedded(served, texts);
    questions = await embedded(served, [query], 'query');
    order = (await served.call<{ order: number[] }>('rerank', { query, passages: texts })).order;
  });
  afterAll(() => served.end());

  const run = async <Printed>(name: string, added: object = {}) =>
    (await runPythonClient(name, served, added)) as Printed;
  const productsOf = () => vectors.map((vector) => dot(vector, questions[0] ?? new Float32Array()));
  const byScore = (scores: readonly number[]) => [...scores.keys()].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0));

  it('openai gives the vectors of `embed` in every form, raises its own errors and repeats calls by itself', async () => {
    const printed = await run<Record<string, Vectors> & Record<string, Refusal | null> & { base64: string[] }>(
      'openai_client',
      { slowKey: slowKeyOf('python-openai') },
    );
    for (const form of ['list', 'float']) expect(asFloats(printed[form] as never), form).toEqual(vectors);
    expect(printed.base64.map(decodeFloats)).toEqual(vectors);
    for (const form of ['one', 'retried']) expect(asFloats(printed[form] as never), form).toEqual(vectors.slice(0, 1));
    expect(printed['models']).toContain('all-MiniLM-L6-v2');
    for (const name of ['wrongKey', 'wrongKeyToEmbed']) {
      expect(printed[name], name).toMatchObject({ type: 'AuthenticationError', status: 401 });
    }
    const bad = (message: RegExp) => ({
      type: 'BadRequestError',
      status: 400,
      message: expect.stringMatching(message),
      body: { type: 'invalid_request_error' },
    });
    expect(printed['dimensions']).toMatchObject(bad(/dimensions/u));
    expect(printed['tooLong']).toMatchObject(bad(/256/u));
    expect(printed['tokenIds']).toMatchObject(bad(/check_embedding_ctx_length=False/u));
    expect(printed['empty']).toMatchObject(bad(/input/u));
    expect(printed['tooFast']).toMatchObject({ type: 'RateLimitError', status: 429 });
  });

  it('cohere embeds and reranks by both versions, raises its own errors and repeats calls by itself', async () => {
    const printed = await run<{
      readonly [name: string]: unknown;
      readonly byType: Record<'int8' | 'uint8' | 'binary' | 'ubinary' | 'float', Vectors> & { base64: string[] };
    }>('cohere_client', { slowKey: slowKeyOf('python-cohere') });
    for (const name of ['first', 'firstByType']) expect(asFloats(printed[name] as Vectors), name).toEqual(vectors);
    const many = printed['manyTexts'] as string[];
    expect(asFloats(printed['many'] as Vectors)).toEqual(await embedded(served, many));
    expect(asFloats(printed.byType.float)).toEqual(vectors);
    expect(printed.byType.base64.map(decodeFloats)).toEqual(vectors);
    for (const type of ['int8', 'uint8', 'binary', 'ubinary'] as const) {
      expect(printed.byType[type], type).toEqual(vectors.map(forms[type]));
    }
    expect(asFloats(printed['asQuery'] as Vectors)).toEqual(questions);
    for (const name of ['firstRerank', 'secondRerank']) {
      const ranking = printed[name] as Ranking;
      expect(
        ranking.map(([index]) => index),
        name,
      ).toEqual(order);
      expect(
        ranking.every(([, score]) => score >= 0 && score <= 1),
        name,
      ).toBe(true);
    }
    expect((printed['top'] as Ranking).map(([index]) => index)).toEqual(order.slice(0, 2));
    for (const name of ['wrongKey', 'wrongKeyToRerank']) {
      expect(printed[name], name).toMatchObject({ type: 'UnauthorizedError', status: 401 });
    }
    for (const name of ['tooLong', 'empty'])
      expect(printed[name], name).toMatchObject({ type: 'BadRequestError', status: 400 });
    expect(printed['cut']).toBe(1);
    expect(printed['tooFast']).toMatchObject({ type: 'TooManyRequestsError', status: 429 });
    expect(asFloats(printed['retried'] as Vectors)).toEqual(vectors.slice(0, 1));
  });

  it('langchain-openai gives the vectors of `embed` as texts, and is told why its token ids are refused', async () => {
    const printed = await run<{ documents: Vectors; query: number[]; chunked: Vectors; refused: string }>(
      'langchain_client',
    );
    expect(asFloats(printed.documents)).toEqual(vectors);
    expect(asFloats(printed.chunked)).toEqual(vectors);
    expect(asFloats([printed.query])).toEqual(questions);
    expect(printed.refused).toContain('check_embedding_ctx_length=False');
  });

  it('huggingface_hub.InferenceClient takes the server for text-embeddings-inference', async () => {
    const printed = await run<
      Record<'one', number[]> &
        Record<'list' | 'embed' | 'cut', Vectors> &
        Record<'tooLong' | 'wrongKey', Refusal> &
        Record<'similarity', number[]>
    >('huggingface_client');
    expect(asFloats(printed.list)).toEqual(vectors);
    expect(asFloats(printed.embed)).toEqual(vectors);
    expect(asFloats([printed.one].flat(1) as never)).toEqual(vectors.slice(0, 1));
    expect(printed.cut).toHaveLength(1);
    for (const [index, product] of productsOf().entries()) expect(printed.similarity[index]).toBeCloseTo(product, 5);
    expect(printed.tooLong).toMatchObject({ status: 413 });
    expect(printed.wrongKey).toMatchObject({ status: 401 });
  });

  it('llama-index embeds by its OpenAI-like and its text-embeddings-inference packages', async () => {
    const printed = await run<{
      openaiLike: Vectors;
      openaiLikeQuery: number[];
      inference: Vectors;
      inferenceQuery: number[];
    }>('llama_index_client');
    expect(asFloats(printed.openaiLike)).toEqual(vectors);
    expect(asFloats(printed.inference)).toEqual(vectors);
    expect(asFloats([printed.openaiLikeQuery, printed.inferenceQuery])).toEqual([questions[0], questions[0]]);
  });

  it('chromadb embeds by its own functions and finds what is nearest', async () => {
    const printed = await run<Record<'openai' | 'server', { vectors: Vectors; found: number[] }>>('chroma_client');
    for (const { vectors: kept, found } of Object.values(printed)) {
      for (const [index, vector] of asFloats(kept).entries()) {
        expect(dot(vector, vectors[index] ?? new Float32Array())).toBeCloseTo(1, 6);
      }
      expect(found).toEqual(byScore(productsOf()));
    }
  });

  it('qdrant-client searches dense, sparse and multi-vectors with the scores of the server', async () => {
    const printed = await run<Record<'dense' | 'sparse' | 'multi', Ranking>>('qdrant');
    const expectRanking = (ranking: Ranking, scores: readonly number[]) => {
      const expected = byScore(scores).filter((index) => (scores[index] ?? 0) !== 0);
      expect(ranking.map(([index]) => index)).toEqual(expected);
      for (const [index, score] of ranking) expect(score).toBeCloseTo(scores[index] ?? NaN, 3);
    };
    expectRanking(printed.dense, productsOf());
    const { sparse } = await served.call<{ sparse: { indices: number[]; values: number[] }[] }>('embed/sparse', {
      texts: [...texts, query],
    });
    const weights = sparse.map(({ indices, values }) => new Map(indices.map((term, at) => [term, values[at] ?? 0])));
    const asked = weights.at(-1) ?? new Map<number, number>();
    expectRanking(
      printed.sparse,
      weights
        .slice(0, -1)
        .map((terms) => [...terms].reduce((sum, [term, weight]) => sum + weight * (asked.get(term) ?? 0), 0)),
    );
    const { scores } = await served.call<{ scores: number[] }>('rerank', { query, passages: texts });
    expectRanking(printed.multi, scores);
  });
});
