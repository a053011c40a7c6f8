import { describe, expect, it } from 'vitest';
import { cohereFamily } from '../../../../src/http/compat/cohere.ts';
import type { CompatFamily } from '../../../../src/http/compat/family.ts';
import { jinaFamily } from '../../../../src/http/compat/jina.ts';
import { relevanceOf } from '../../../../src/http/compat/relevance.ts';
import { callRoute, scores } from './fake-call.ts';

const routes: readonly (readonly [string, CompatFamily])[] = [
  ['/v1/rerank', jinaFamily],
  ['/rerank', jinaFamily],
  ['/v2/rerank', cohereFamily],
];
const cohereClient = { headers: { 'x-fern-sdk-name': 'cohere-ai' } };
const base = { query: 'q', documents: ['a', 'b', 'c'] };
const jina = (body: object, options = {}) => callRoute(jinaFamily, '/v1/rerank', body, options);
const bare = [
  { index: 1, relevance_score: scores[1] },
  { index: 2, relevance_score: scores[2] },
  { index: 0, relevance_score: scores[0] },
];
const withTexts = bare.map((result) => ({ ...result, document: { text: base.documents[result.index] } }));

describe.each(routes)('POST %s', (path, family) => {
  const call = (body: unknown) => callRoute(family, path, body);

  it('orders the documents best first, and says what both services say beside', async () => {
    const { status, json, request } = await call({ ...base, return_documents: false, model: 'rerank-v3.5' });
    expect(status).toBe(200);
    expect(json).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      model: 'cross@1',
      object: 'list',
      results: bare,
      usage: { total_tokens: 7, prompt_tokens: 7 },
      meta: { api_version: { version: path === '/v2/rerank' ? '2' : '1' }, billed_units: { search_units: 1 } },
    });
    expect(request).toMatchObject({
      query: 'q',
      passages: { values: base.documents, field: 'documents' },
      model: null,
      truncation: null,
    });
  });

  it('gives documents back where they are asked for', async () => {
    expect((await call({ ...base, return_documents: true })).json).toMatchObject({ results: withTexts });
  });

  it('top_n shortens the results, and one above the count means all', async () => {
    const resultsOf = async (topN: unknown) => {
      const { json } = await call({ ...base, top_n: topN, return_documents: false });
      return (json as { results: unknown }).results;
    };
    expect(await resultsOf(2)).toEqual(bare.slice(0, 2));
    expect(await resultsOf(99)).toEqual(bare);
    expect(await resultsOf(null)).toEqual(bare);
  });

  it.each([
    [[], 'body'],
    [{ documents: ['a'] }, 'query'],
    [{ query: 5, documents: ['a'] }, 'query'],
    [{ query: 'q' }, 'documents'],
    [{ query: 'q', documents: 'a' }, 'documents'],
    [{ query: 'q', documents: [] }, 'documents'],
    [{ query: 'q', documents: ['a', 5] }, 'documents[1]'],
    [{ query: 'q', documents: [null] }, 'documents[0]'],
    [{ query: 'q', documents: [{ image: 'x' }] }, 'documents[0].text'],
    [{ query: 'q', documents: [{ text: 5 }] }, 'documents[0].text'],
    [{ ...base, top_n: 0 }, 'top_n'],
    [{ ...base, top_n: '2' }, 'top_n'],
    [{ ...base, return_documents: 'yes' }, 'return_documents'],
    [{ ...base, rank_fields: 'title' }, 'rank_fields'],
    [{ ...base, rank_fields: [5] }, 'rank_fields[0]'],
    [{ ...base, rank_fields: Array(65).fill('a') }, 'rank_fields'],
    [{ query: 'q', documents: [{ a: 'x' }], rank_fields: ['b', 'text'] }, 'documents[0].text'],
    [{ query: 'q', documents: Array(129).fill(5) }, 'documents'],
    [{ ...base, model: [] }, 'model'],
    [{ ...base, max_tokens_per_doc: 0 }, 'max_tokens_per_doc'],
    [{ ...base, max_chunks_per_doc: 'x' }, 'max_chunks_per_doc'],
  ])('refuses %j and names the field', async (body, field) => {
    await expect(call(body)).rejects.toMatchObject({ data: { field } });
  });
});

describe('the path that Cohere and Jina share', () => {
  it('without return_documents gives documents to all but the clients of Cohere, which expect none', async () => {
    expect((await jina(base)).json).toMatchObject({ results: withTexts });
    expect((await jina(base, cohereClient)).json).toHaveProperty('results', bare);
    expect((await jina({ ...base, return_documents: true }, cohereClient)).json).toMatchObject({ results: withTexts });
    expect((await callRoute(cohereFamily, '/v2/rerank', base)).json).toHaveProperty('results', bare);
  });

  it('an object is read by its text, or by rank_fields in their order, and given back as it was', async () => {
    const documents = [{ text: 'a', title: 'x', id: '1' }, 'b', { title: 'z', text: 'c' }];
    const plain = await jina({ query: 'q', documents });
    expect(plain.request).toMatchObject({ passages: { values: ['a', 'b', 'c'] } });
    expect(plain.json).toMatchObject({
      results: [{ document: { text: 'b' } }, { document: documents[2] }, { document: documents[0] }],
    });
    const ranked = await jina({ query: 'q', documents, rank_fields: ['title', 'none', 'text'] });
    expect(ranked.request).toMatchObject({ passages: { values: ['x\na', 'b', 'z\nc'] } });
  });

  it('every digit of a document that is given back is as it was sent', async () => {
    const sent = [
      '{"text":"a","id":12345678901234567890,"weight":1e400}',
      '"b"',
      '{ "text" : "c]},\\"", "ratio": 1.10, "text":"d", "of":[{"n":-0}, 0.10000000000000000001] }',
    ];
    for (const bodyText of [
      `{"documents":[5],"query":"q","d\\u006fcuments" : [ ${sent.join(' ,\n')} ] ,"top_n":3}`,
      `{"documents":[${sent.join(',')}],"query":{"text":"documents"},"other":{"documents":["x"]}}`,
    ]) {
      const answer = await jina(JSON.parse(bodyText) as object, { bodyText });
      expect(answer.text).toContain(`"document":${sent[0] ?? ''}}`);
      expect(answer.text).toContain(`"document":${sent[2] ?? ''}}`);
      expect(answer.text).toContain('"document":{"text":"b"}}');
    }
  });

  it('errors do not repeat the names in rank_fields', async () => {
    for (const document of [{}, { secret: 5 }]) {
      const refused = jina({ query: 'q', documents: [document], rank_fields: ['secret'] });
      await expect(refused).rejects.toMatchObject({
        data: { field: 'documents[0]' },
        message: expect.not.stringContaining('secret') as string,
      });
    }
  });

  it('a query may be an object with a text', async () => {
    const query = { type: 'text', text: 'q' };
    expect((await jina({ ...base, query })).request).toMatchObject({ query: 'q' });
    expect((await jina({ ...base, query: { text: 'q' } })).request).toMatchObject({ query: 'q' });
    expect((await jina({ ...base, query: ['p', { text: 'q' }, query] })).request).toMatchObject({ query: 'p\nq\nq' });
    await expect(jina({ ...base, query: { image: 'x' } })).rejects.toMatchObject({ data: { field: 'query.type' } });
    await expect(jina({ ...base, query: { type: 'image', text: 'q' } })).rejects.toMatchObject({
      data: { field: 'query.type' },
    });
  });

  it('a sum over the rows of a query becomes their mean', async () => {
    expect((await jina({ ...base, return_documents: false }, { queryRows: 32 })).json).toMatchObject({ results: bare });
  });

  it('that mean is 1 at most, whatever rounding did to the sum', async () => {
    expect(relevanceOf({ scores: [32.00001017, -32.001], queryRows: 32 }, 0)).toBe(1);
    expect(relevanceOf({ scores: [32.00001017, -32.001], queryRows: 32 }, 1)).toBe(-1);
    expect(relevanceOf({ scores: [1.5], queryRows: null }, 0)).toBe(1.5);
  });

  it('truncation false refuses what is too long', async () => {
    expect((await jina({ ...base, truncation: false })).request).toMatchObject({ truncation: 'refuse' });
    expect((await jina({ ...base, truncation: true })).request).toMatchObject({ truncation: null });
  });

  it('a limit on the tokens of a document, by either name, is that of the task itself', async () => {
    const documents = ['a b c d', 'e'];
    for (const name of ['max_tokens_per_doc', 'max_doc_length']) {
      const { request, json } = await jina({ query: 'q', documents, [name]: 4 });
      expect(request).toMatchObject({ passages: { values: documents }, maxPassageTokens: 4 });
      expect(json).toMatchObject({ results: [{}, { document: { text: 'a b c d' } }] });
    }
  });

  it('a search is a hundred documents', async () => {
    const { json } = await jina({ query: 'q', documents: Array(101).fill('a') });
    expect(json).toMatchObject({ meta: { billed_units: { search_units: 2 } } });
  });
});
