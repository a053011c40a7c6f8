/** The rule that every call of another service's client is counted once, whatever came of it. */
import { afterEach, describe, expect, it } from 'vitest';
import { startServer, type TestServer } from '../support/harness/server.ts';

const opened: TestServer[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
});

async function start(): Promise<{ server: TestServer; base: string }> {
  const server = await startServer({});
  opened.push(server);
  const { port } = await server.listener();
  return { server, base: `http://127.0.0.1:${port}` };
}

/** Counts of calls by `method outcome`. */
async function countsOf({ service }: TestServer): Promise<Record<string, number>> {
  const { values } = await service.metrics.calls.get();
  return Object.fromEntries(values.map(({ labels, value }) => [`${labels.method} ${labels.outcome}`, value]));
}

const query = 'a';
const good: readonly (readonly [path: string, body: unknown, counted: string])[] = [
  ['/v1/embeddings', { input: 'a' }, 'embed ok'],
  ['/embeddings', { input: 'a' }, 'embed ok'],
  ['/v1/embed', { texts: ['a'] }, 'embed ok'],
  ['/v2/embed', { texts: ['a'], input_type: 'search_query', embedding_types: ['float'] }, 'embed ok'],
  ['/v1/rerank', { query, documents: ['a'] }, 'rerank ok'],
  ['/v2/rerank', { query, documents: ['a'] }, 'rerank ok'],
  ['/rerank', { query, documents: ['a'] }, 'rerank ok'],
  ['/rerank', { query, texts: ['a'] }, 'rerank ok'],
  ['/', { inputs: 'a' }, 'embed ok'],
  ['/embed', { inputs: 'a' }, 'embed ok'],
  ['/embed_all', { inputs: 'a' }, 'embed ok'],
  ['/embed_sparse', { inputs: 'a' }, 'embed/sparse ok'],
  ['/similarity', { inputs: { source_sentence: 'a', sentences: ['b'] } }, 'embed ok'],
  ['/tokenize', { inputs: 'a' }, 'tokenize ok'],
  ['/decode', { ids: [97] }, 'decode ok'],
];

describe('calls of other services’ clients', () => {
  it.each(good)('%s %j counts once as %s', async (path, body, counted) => {
    const { server, base } = await start();
    const { status } = await fetch(base + path, { method: 'POST', body: JSON.stringify(body) });
    expect(status).toBe(200);
    expect(await countsOf(server)).toEqual({ [counted]: 1 });
  });

  it.each(good)('%s with a body that is refused counts once, by its error', async (path, _, counted) => {
    const { server, base } = await start();
    const { status } = await fetch(base + path, { method: 'POST', body: '{}' });
    expect(status).toBeGreaterThanOrEqual(400);
    const [method = ''] = counted.split(' ');
    expect(await countsOf(server)).toEqual({ [`${method} invalidParams`]: 1 });
  });

  it('what is only read counts as nothing', async () => {
    const { server, base } = await start();
    for (const path of ['/v1/models', '/v1/models/none', '/info']) await fetch(base + path);
    expect(await countsOf(server)).toEqual({});
  });
});
