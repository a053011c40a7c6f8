import { afterEach, describe, expect, it } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { fillQueue } from '../support/harness/full-queue.ts';
import { openHttpClient } from '../support/harness/http-client.ts';
import { startServer, type TestServer } from '../support/harness/server.ts';

/** Text that no answer to a refused call may hold. */
const secret = 'sesame';
const texts = ['ab', 'c'];
const vectors = [
  [97, 98, 0, 0],
  [99, 0, 0, 0],
];
const byWords = { query: 'a b', documents: ['c', 'a', 'a b'] };
const inOrder = [
  { index: 2, relevance_score: 2 },
  { index: 1, relevance_score: 1 },
  { index: 0, relevance_score: 0 },
];

const opened: TestServer[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
});

async function start(settings: Partial<Settings> = {}): Promise<TestServer> {
  const server = await startServer(settings);
  opened.push(server);
  return server;
}

interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Readonly<Record<string, unknown>>;
}

async function post(
  server: TestServer,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const { port } = await server.listener();
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  expect(answer.headers.get('content-type')).toBe('application/json');
  const text = await answer.text();
  if (answer.status !== 200) expect(text).not.toContain(secret);
  return { status: answer.status, headers: answer.headers, json: JSON.parse(text) as Answered['json'] };
}

describe('Cohere and Jina over HTTP', () => {
  it('embed gives the vectors of RCP in every form', async () => {
    const server = await start();
    expect(await post(server, '/v1/embed', { texts })).toMatchObject({ status: 200, json: { embeddings: vectors } });
    const types = ['float', 'int8', 'uint8', 'binary', 'ubinary', 'base64'];
    const request = { texts, model: 'embed-v4.0', input_type: 'search_document', embedding_types: types };
    const { json } = await post(server, '/v2/embed', request);
    const base64 = vectors.map((vector) => Buffer.from(Float32Array.from(vector).buffer).toString('base64'));
    expect(json).toMatchObject({
      embeddings: {
        float: vectors,
        int8: [
          [127, 127, 0, 0],
          [127, 0, 0, 0],
        ],
        uint8: [
          [255, 255, 128, 128],
          [255, 128, 128, 128],
        ],
        ubinary: [[192], [128]],
        binary: [[64], [0]],
        base64,
      },
      meta: { billed_units: { input_tokens: 3 } },
      model: 'fix@1',
    });
  });

  it('rerank orders as RCP does on all three paths', async () => {
    const server = await start();
    for (const path of ['/v1/rerank', '/v2/rerank', '/rerank']) {
      const request = { ...byWords, return_documents: false, unknown: 1 };
      expect((await post(server, path, request)).json).toHaveProperty('results', inOrder);
      expect((await post(server, path, { ...request, top_n: 1 })).json).toHaveProperty('results', inOrder.slice(0, 1));
      expect((await post(server, path, { ...request, top_n: 99 })).json).toHaveProperty('results', inOrder);
    }
  });

  it('what is over an advertised limit is refused with the field, the limit and the count', async () => {
    const server = await start();
    const many = Array(5).fill(secret);
    const message = (field: string) => `${field}: has 5 elements, the limit is 4`;
    for (const [path, body, field] of [
      ['/v1/embed', { texts: many }, 'texts'],
      ['/v2/embed', { texts: many, input_type: 'clustering' }, 'texts'],
      ['/v1/rerank', { query: 'q', documents: many }, 'documents'],
      ['/v2/rerank', { query: 'q', documents: many }, 'documents'],
      ['/rerank', { query: 'q', documents: many }, 'documents'],
    ] as const) {
      expect(await post(server, path, body)).toMatchObject({ status: 400, json: { message: message(field) } });
    }
    const long = { texts: [secret.repeat(20_000)] };
    expect(await post(server, '/v1/embed', long)).toMatchObject({ status: 413, json: { message: expect.any(String) } });
  });

  it.each([
    ['/v1/embed', {}],
    ['/v1/embed', { texts: [] }],
    ['/v1/embed', { texts: [secret, 5] }],
    ['/v1/embed', { texts: secret }],
    ['/v1/embed', { texts: [secret], input_type: 'image' }],
    ['/v2/embed', { texts: [secret] }],
    ['/v2/embed', { texts: [secret], input_type: 'clustering', output_dimension: 2 }],
    ['/v2/embed', { texts: [secret], input_type: 'clustering', output_dimension: 5 }],
    ['/v1/rerank', { query: secret, documents: [] }],
    ['/v1/rerank', { query: secret, documents: [5] }],
    ['/v1/rerank', { query: secret, documents: [secret], top_n: 0 }],
    ['/v2/rerank', { documents: [secret] }],
    ['/rerank', { query: 5, documents: [secret] }],
    ['/v1/embed', `{"texts":["${secret}"`],
    ['/v1/rerank', `{"query":"${secret}"`],
    ['/v2/rerank', '[]'],
  ])('%s refuses %j with 400 and never says the text', async (path, body) => {
    const server = await start();
    const { status, json } = await post(server, path, body);
    expect(status).toBe(400);
    expect(json).toMatchObject({ message: expect.stringMatching(/./) });
    expect(JSON.stringify(json)).not.toContain('x-trivec');
    expect('detail' in json).toBe(path === '/v1/rerank' || path === '/rerank');
  });

  it('a wrong key is 401, in the shape of each service', async () => {
    const server = await start({ apiKey: ['right-key'] });
    for (const path of ['/v1/embed', '/v1/rerank', '/v2/rerank']) {
      const refused = await post(server, path, { texts, ...byWords }, { Authorization: 'Bearer wrong' });
      expect(refused).toMatchObject({ status: 401, json: { message: expect.any(String) } });
      const { status } = await post(server, path, { texts, ...byWords }, { Authorization: 'Bearer right-key' });
      expect(status).toBe(200);
    }
  });

  it('where only served names are wanted, another is 404 and the names are told', async () => {
    const server = await start({ compatModels: 'served' });
    for (const path of ['/v1/embed', '/v1/rerank']) {
      const body = { texts, ...byWords, model: 'embed-v4.0' };
      const message = expect.stringMatching(/^model: .*fix(-r)?@1.*embed-v4\.0/);
      expect(await post(server, path, body)).toMatchObject({ status: 404, json: { message } });
      expect((await post(server, path, { ...body, model: null })).status).toBe(200);
    }
  });

  it('a full queue is 429 with Retry-After', async () => {
    const server = await start();
    const client = await openHttpClient(server);
    try {
      const accepted = await fillQueue(client, server);
      for (const [path, body] of [
        ['/v1/embed', { texts: [secret] }],
        ['/v1/rerank', { query: 'q', documents: [secret] }],
      ] as const) {
        const { status, headers, json } = await post(server, path, body);
        expect(status).toBe(429);
        expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
        expect(json).toMatchObject({ message: expect.any(String) });
      }
      server.engine.release();
      await Promise.all(accepted);
    } finally {
      await client.close();
    }
  });
});
