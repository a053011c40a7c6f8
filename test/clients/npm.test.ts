import { CohereEmbeddings, CohereRerank } from '@langchain/cohere';
import { Document as LangchainDocument } from '@langchain/core/documents';
import { OpenAIEmbeddings } from '@langchain/openai';
import { OpenAIEmbedding } from '@llamaindex/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, embed, embedMany } from 'ai';
import { CohereClient, CohereClientV2, CohereError } from 'cohere-ai';
import { Document, MetadataMode, Settings, VectorStoreIndex } from 'llamaindex';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  asFloats,
  embedded,
  forms,
  key,
  query,
  serveWithKeys,
  slowKeyOf,
  texts,
  tooLong,
  untilRefused,
  wrongKey,
} from '../support/clients.ts';
import { decodeFloats } from '../golden/golden-values.ts';
import type { Served } from '../support/served.ts';

let served: Served;
let vectors: Float32Array[];
let questions: Float32Array[];
/** Order and scores of rerank, best first. */
let ranking: { index: number; score: number }[];
beforeAll(async () => {
  served = await serveWithKeys();
  vectors = await embedded(served, texts);
  questions = await embedded(served, [query], 'query');
  ranking = (await served.call<{ results: typeof ranking }>('rerank', { query, passages: texts })).results;
});
afterAll(() => served.end());

const order = () => ranking.map(({ index }) => index);

describe('openai', () => {
  const model = 'text-embedding-3-small';
  const client = (apiKey: string, maxRetries = 0) =>
    new OpenAI({ baseURL: `${served.baseUrl}/v1`, apiKey, maxRetries, logLevel: 'off' });
  const floatsOf = (answer: OpenAI.CreateEmbeddingResponse) => asFloats(answer.data.map((item) => item.embedding));

  it('gives the vectors of `embed` for a string and a list, as base64 unless told, and as numbers', async () => {
    const { embeddings } = client(key);
    expect(floatsOf(await embeddings.create({ model, input: [...texts] }))).toEqual(vectors);
    expect(floatsOf(await embeddings.create({ model, input: texts[0] ?? '' }))).toEqual(vectors.slice(0, 1));
    const asNumbers = await embeddings.create({ model, input: [...texts], encoding_format: 'float' });
    expect(floatsOf(asNumbers)).toEqual(vectors);
    const asBase64 = await embeddings.create({ model, input: [...texts], encoding_format: 'base64' });
    expect(asBase64.data.map((item) => decodeFloats(item.embedding as unknown as string))).toEqual(vectors);
  });

  it('counts tokens, and names the model that ran, which is one of those that it lists', async () => {
    const answer = await client(key).embeddings.create({ model, input: 'heat' });
    expect(answer.usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
    const names = [];
    for await (const { id } of client(key).models.list()) names.push(id);
    expect(names).toContain(answer.model);
  });

  it('raises AuthenticationError where the key is wrong', async () => {
    await expect(client(wrongKey).models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    const refused = client(wrongKey).embeddings.create({ model, input: 'a' });
    await expect(refused).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  });

  it.each([
    ['dimensions of a model that cannot be cut', { input: 'a', dimensions: 100 }, /dimensions/u],
    ['a text that is too long', { input: tooLong }, /256/u],
    ['ids of another tokeniser', { input: [[15_339, 1917]] }, /check_embedding_ctx_length=False/u],
    ['an empty list', { input: [] as string[] }, /input/u],
    ['more than a call may have', { input: Array.from({ length: 2049 }, () => 'a') }, /input/u],
  ])('raises BadRequestError for %s, with a message that helps', async (_case, more, message) => {
    const error = await client(key)
      .embeddings.create({ model, ...more })
      .then(
        () => null,
        (thrown: unknown) => thrown,
      );
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ message: expect.stringMatching(message), type: 'invalid_request_error' });
    expect(String(error)).not.toContain('boundary');
  });

  it('raises RateLimitError where its calls come too fast, and succeeds by its own retries', async () => {
    const call = (maxRetries: number) =>
      client(slowKeyOf('openai'), maxRetries).embeddings.create({ model, input: texts[0] ?? '' });
    expect(await untilRefused(() => call(0))).toBeInstanceOf(OpenAI.RateLimitError);
    expect(floatsOf(await call(4))).toEqual(vectors.slice(0, 1));
  });
});

describe('cohere-ai', () => {
  const options = (token: string) => ({ token, environment: served.baseUrl });
  const first = () => new CohereClient(options(key));
  const second = () => new CohereClientV2(options(key));
  const model = 'embed-english-v3.0';
  const asked = { model, inputType: 'search_document' as const };

  it('gives the vectors of `embed` by version 1, plain and by type', async () => {
    const plain = await first().embed({ ...asked, texts: [...texts] });
    expect(asFloats(plain.embeddings as number[][])).toEqual(vectors);
    const typed = await first().embed({ ...asked, texts: [...texts], embeddingTypes: ['float', 'int8'] });
    const { float, int8 } = typed.embeddings as { float: number[][]; int8: number[][] };
    expect(asFloats(float)).toEqual(vectors);
    expect(int8).toEqual(vectors.map(forms.int8));
  });

  it('gives every type of embedding by version 2', async () => {
    const embeddingTypes = ['float', 'int8', 'uint8', 'binary', 'ubinary', 'base64'] as const;
    const answer = await second().embed({ ...asked, texts: [...texts], embeddingTypes: [...embeddingTypes] });
    const { float = [], base64 = [], ...integers } = answer.embeddings;
    expect(asFloats(float)).toEqual(vectors);
    expect(base64.map(decodeFloats)).toEqual(vectors);
    for (const type of ['int8', 'uint8', 'binary', 'ubinary'] as const) {
      expect(integers[type], type).toEqual(vectors.map(forms[type]));
    }
    const question = await second().embed({
      model,
      inputType: 'search_query',
      texts: [query],
      embeddingTypes: ['float'],
    });
    expect(asFloats(question.embeddings.float ?? [])).toEqual(questions);
  });

  it('reranks by both versions in the order of `rerank`, with means for its sums, cut by top_n', async () => {
    const request = { model: 'rerank-v3.5', query, documents: [...texts] };
    for (const { results } of [await first().rerank(request), await second().rerank(request)]) {
      expect(results.map(({ index }) => index)).toEqual(order());
      // A sum over the rows of the query, divided by their number.
      const divisors = results.map(({ relevanceScore }, place) => (ranking[place]?.score ?? NaN) / relevanceScore);
      const [divisor = NaN] = divisors;
      expect(Math.round(divisor)).toBeGreaterThan(1);
      for (const each of divisors) expect(each).toBeCloseTo(Math.round(divisor), 6);
    }
    const top = await second().rerank({ ...request, topN: 2 });
    expect(top.results.map(({ index }) => index)).toEqual(order().slice(0, 2));
    const withTexts = await first().rerank({ ...request, returnDocuments: true });
    expect(withTexts.results.map(({ document }) => document?.text)).toEqual(order().map((index) => texts[index]));
    const without = await first().rerank(request);
    expect(without.results.every(({ document }) => document === undefined)).toBe(true);
  });

  it('raises an error with status 401, 400 or 429, and succeeds by its own retries', async () => {
    const wrong = new CohereClientV2(options(wrongKey));
    await expect(wrong.embed({ ...asked, texts: ['a'], embeddingTypes: ['float'] })).rejects.toMatchObject({
      statusCode: 401,
    });
    const rerank = wrong.rerank({ model, query, documents: ['a'] });
    await expect(rerank).rejects.toBeInstanceOf(CohereError);
    const refused = second().embed({ ...asked, texts: [tooLong], truncate: 'NONE', embeddingTypes: ['float'] });
    await expect(refused).rejects.toMatchObject({ statusCode: 400, message: expect.stringContaining('256') });
    const slow = new CohereClientV2(options(slowKeyOf('cohere')));
    const call = (maxRetries: number) =>
      slow.embed({ ...asked, texts: texts.slice(0, 1), embeddingTypes: ['float'] }, { maxRetries });
    expect(await untilRefused(() => call(0))).toMatchObject({ statusCode: 429 });
    expect(asFloats((await call(4)).embeddings.float ?? [])).toEqual(vectors.slice(0, 1));
  });
});

describe('langchain', () => {
  it('@langchain/openai sends texts, never token ids, and gives the vectors of `embed`', async () => {
    const bodies: string[] = [];
    const embeddings = new OpenAIEmbeddings({
      apiKey: key,
      batchSize: 4,
      configuration: {
        baseURL: `${served.baseUrl}/v1`,
        fetch: (input, init) => {
          bodies.push(init?.body as string);
          return fetch(input, init);
        },
      },
    });
    expect(asFloats(await embeddings.embedDocuments([...texts]))).toEqual(vectors);
    expect(asFloats([await embeddings.embedQuery(query)])).toEqual(questions);
    expect(
      bodies.map((body) => [JSON.parse(body).input].flat().every((each: unknown) => typeof each === 'string')),
    ).toEqual(bodies.map(() => true));
  });

  it('@langchain/openai waits and calls again where its calls come too fast', async () => {
    const configuration = { baseURL: `${served.baseUrl}/v1` };
    const embeddings = new OpenAIEmbeddings({ apiKey: slowKeyOf('langchain'), batchSize: 3, configuration });
    expect(asFloats(await embeddings.embedDocuments([...texts]))).toEqual(vectors);
  });

  it('@langchain/cohere embeds and reranks', async () => {
    // It takes a client whose types are those of its own version.
    const client = new CohereClient({ token: key, environment: served.baseUrl }) as never;
    const embeddings = new CohereEmbeddings({ client, model: 'embed-english-v3.0', batchSize: 4 });
    expect(asFloats(await embeddings.embedDocuments([...texts]))).toEqual(vectors);
    expect(asFloats([await embeddings.embedQuery(query)])).toEqual(questions);
    const reranker = new CohereRerank({ client, model: 'rerank-v3.5', topN: 3 });
    expect((await reranker.rerank([...texts], query)).map(({ index }) => index)).toEqual(order().slice(0, 3));
    const documents = texts.map((pageContent) => new LangchainDocument({ pageContent }));
    const compressed = await reranker.compressDocuments(documents, query);
    expect(compressed.map(({ pageContent }) => texts.indexOf(pageContent))).toEqual(order().slice(0, 3));
  });
});

describe('llamaindex', () => {
  const embedding = () =>
    new OpenAIEmbedding({ apiKey: key, baseURL: `${served.baseUrl}/v1`, model: 'any', maxRetries: 0 });

  it('gives the vectors of `embed`, one by one and in batches', async () => {
    expect(asFloats(await embedding().getTextEmbeddings([...texts]))).toEqual(vectors);
    expect(asFloats(await embedding().getTextEmbeddingsBatch([...texts]))).toEqual(vectors);
    expect(asFloats([await embedding().getTextEmbedding(texts[0] ?? '')])).toEqual(vectors.slice(0, 1));
  });

  it('finds in its own index what is nearest by these vectors', async () => {
    // Each of the two packages has a copy of the class.
    // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment
    const nearest = await Settings.withEmbedModel(embedding(), async () => {
      const documents = texts.map((text, index) => new Document({ text, id_: String(index) }));
      const retriever = (await VectorStoreIndex.fromDocuments(documents)).asRetriever({ similarityTopK: 2 });
      return retriever.retrieve({ query });
    });
    const products = vectors.map((vector) =>
      vector.reduce((sum, value, at) => sum + value * (questions[0]?.[at] ?? 0), 0),
    );
    const byProduct = texts.toSorted((a, b) => (products[texts.indexOf(b)] ?? 0) - (products[texts.indexOf(a)] ?? 0));
    expect(nearest.map(({ node }) => node.getContent(MetadataMode.NONE))).toEqual(byProduct.slice(0, 2));
  });
});

describe('ai with @ai-sdk/openai-compatible', () => {
  const model = (apiKey: string) =>
    createOpenAICompatible({ name: 'trivec', baseURL: `${served.baseUrl}/v1`, apiKey }).embeddingModel('any');

  it('gives the vectors of `embed` for one value and for many, and counts tokens', async () => {
    const many = await embedMany({ model: model(key), values: [...texts] });
    expect(asFloats(many.embeddings)).toEqual(vectors);
    expect(many.usage.tokens).toBeGreaterThan(texts.length);
    expect(asFloats([(await embed({ model: model(key), value: query })).embedding])).toEqual(questions);
  });

  it('raises APICallError with the message of the server, and succeeds by its own retries', async () => {
    const refusal = (apiKey: string, value: string) =>
      embed({ model: model(apiKey), value, maxRetries: 0 }).then(
        () => null,
        (thrown: unknown) => thrown,
      );
    const long = await refusal(key, tooLong);
    expect(APICallError.isInstance(long)).toBe(true);
    expect(long).toMatchObject({ statusCode: 400, isRetryable: false, message: expect.stringContaining('256') });
    expect(await refusal(wrongKey, 'a')).toMatchObject({ statusCode: 401, isRetryable: false });
    const slow = (maxRetries: number) => embed({ model: model(slowKeyOf('ai')), value: texts[0] ?? '', maxRetries });
    expect(await untilRefused(() => slow(0))).toMatchObject({ statusCode: 429, isRetryable: true });
    expect(asFloats([(await slow(4)).embedding])).toEqual(vectors.slice(0, 1));
  });
});
