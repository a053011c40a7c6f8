import { afterEach, describe, expect, it } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { fillQueue } from '../support/harness/full-queue.ts';
import { openHttpClient } from '../support/harness/http-client.ts';
import { startServer, type TestServer } from '../support/harness/server.ts';

/** Text that no answer to a refused call may hold. */
const secret = 'sesame';

const opened: TestServer[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
});

async function start(settings: Partial<Settings> = {}): Promise<TestServer> {
  const server = await startServer(settings);
  opened.push(server);
  return server;
}

async function ask(server: TestServer, path: string, init: RequestInit = {}) {
  const { port } = await server.listener();
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, init);
  const text = await answer.text();
  if (answer.status !== 200) expect(text).not.toContain(secret);
  return { status: answer.status, headers: answer.headers, text };
}

async function post(server: TestServer, path: string, body: unknown, headers: Record<string, string> = {}) {
  const sent = typeof body === 'string' ? body : JSON.stringify(body);
  const all = { 'Content-Type': 'application/json', ...headers };
  const { text, ...answer } = await ask(server, path, { method: 'POST', headers: all, body: sent });
  expect(answer.headers.get('content-type')).toBe('application/json');
  return { ...answer, json: JSON.parse(text) as unknown };
}

describe('text-embeddings-inference over HTTP', () => {
  it('every route answers with what RCP says of the same texts', async () => {
    const server = await start();
    const inputs = ['ab', 'c'];
    const vectors = [
      [97, 98, 0, 0],
      [99, 0, 0, 0],
    ];
    const answers: [string, unknown, unknown][] = [
      ['/', { inputs }, vectors],
      ['/embed', { inputs, unknown: { field: 1 } }, vectors],
      ['/embed', { inputs: [[97, 98], 'c'] }, vectors],
      ['/embed', { inputs: [97, 98] }, [vectors[0]]],
      ['/embed', { inputs: 'c', normalize: true }, [[1, 0, 0, 0]]],
      ['/embed_sparse', { inputs: 'aab' }, [[97, 98].map((index) => ({ index, value: 99 - index }))]],
      ['/embed_all', { inputs: 'ab' }, [[97, 98].map((byte) => [byte, 0, 0, 0])]],
      ['/rerank', { query: 'a b', texts: ['c', 'a b'] }, [1, 0].map((index) => ({ index, score: 2 * index }))],
      ['/similarity', { inputs: { source_sentence: 'a', sentences: ['b', 'a'] } }, [1, 1]],
      ['/', { inputs: { source_sentence: 'a', sentences: ['b', 'a'] } }, [1, 1]],
      ['/tokenize', { inputs: 'a' }, [[{ id: 97, text: '', special: false, start: 0, stop: 1 }]]],
      ['/decode', { ids: [[97, 98], [99]] }, inputs],
    ];
    for (const [path, body, expected] of answers) {
      const { status, json } = await post(server, path, body);
      expect({ path, status, json }).toEqual({ path, status: 200, json: expected });
    }
  });

  it('info is the shape that its clients read', async () => {
    const server = await start();
    const { status, text } = await ask(server, '/info');
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      model_id: 'fix@1',
      model_dtype: 'float32',
      model_type: { embedding: { pooling: 'mean' } },
      max_client_batch_size: 4,
      auto_truncate: false,
      version: '1',
    });
  });

  it('health is empty, needs no key, and is an error once no device serves', async () => {
    const server = await start({ apiKey: ['key'] });
    const { status, text } = await ask(server, '/health');
    expect({ status, text }).toEqual({ status: 200, text: '' });
    await server.service.devices.stop();
    const stopped = await ask(server, '/health');
    expect(stopped.status).toBe(503);
    expect(JSON.parse(stopped.text)).toEqual({ error: 'unhealthy', error_type: 'Unhealthy' });
  });

  it('a wrong key is refused, the right one is not', async () => {
    const server = await start({ apiKey: ['key'] });
    const refused = await post(server, '/embed', { inputs: secret }, { Authorization: 'Bearer wrong' });
    expect(refused).toMatchObject({ status: 401, json: { error_type: 'Unauthorized' } });
    expect(refused.headers.get('www-authenticate')).toBe('Bearer');
    expect((await ask(server, '/info')).status).toBe(401);
    const taken = await post(server, '/embed', { inputs: 'c' }, { Authorization: 'Bearer key' });
    expect(taken.status).toBe(200);
  });

  it.each([
    ['/embed', 'not json', 400, 'Validation'],
    ['/embed', { inputs: 1 }, 422, 'Validation'],
    ['/embed', [secret], 422, 'Validation'],
    ['/embed', { inputs: [secret, null] }, 422, 'Validation'],
    ['/embed', { inputs: [] }, 400, 'Empty'],
    ['/embed', { inputs: Array(5).fill(secret) }, 413, 'Validation'],
    ['/embed', { inputs: [1, 300] }, 422, 'Validation'],
    ['/embed', { inputs: secret, dimensions: 2 }, 422, 'Validation'],
    ['/embed', { inputs: secret, prompt_name: 'query' }, 422, 'Validation'],
    ['/embed', { inputs: 'boom' }, 424, 'Backend'],
    ['/embed', { inputs: secret.repeat(20_000) }, 413, 'Validation'],
    ['/embed_sparse', { inputs: {} }, 422, 'Validation'],
    ['/embed_all', { inputs: '' }, 400, 'Empty'],
    ['/rerank', { query: secret, texts: [] }, 400, 'Empty'],
    ['/rerank', { query: secret, texts: Array(5).fill(secret) }, 413, 'Validation'],
    ['/rerank', { query: 7, texts: [secret] }, 422, 'Validation'],
    ['/similarity', { inputs: { source_sentence: secret, sentences: Array(4).fill('a') } }, 413, 'Validation'],
    ['/tokenize', { inputs: [7] }, 422, 'Validation'],
    ['/decode', { ids: [1, 300] }, 422, 'Tokenizer'],
    ['/decode', { ids: [] }, 400, 'Empty'],
  ])('%s refuses %j with %i %s', async (path, body, status, errorType) => {
    const server = await start();
    const answer = await post(server, path, body);
    expect(answer).toMatchObject({ status, json: { error: expect.any(String) as unknown, error_type: errorType } });
  });

  it('a full queue is 429 with the time to come back', async () => {
    const server = await start();
    const client = await openHttpClient(server);
    const accepted = await fillQueue(client, server);
    const refused = await post(server, '/embed', { inputs: secret });
    expect(refused).toMatchObject({ status: 429, json: { error_type: 'Overloaded' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    server.engine.release();
    await Promise.all(accepted);
    await client.close();
  });

  it('a route answers only its own method', async () => {
    const server = await start();
    expect((await ask(server, '/embed')).status).toBe(405);
    expect((await ask(server, '/info', { method: 'POST', body: '{}' })).status).toBe(405);
  });
});
