import { describe, expect, it } from 'vitest';
import { connect } from '../../../src/client/browser.ts';
import { baseUrlOf } from '../../../src/client/http.ts';
import { createFakeServer, failure, rejectionOf } from './fake-server.ts';

const stream = (pieces: readonly string[]) =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  );

describe('an address', () => {
  it.each([
    ['http://127.0.0.1:8000', 'http://127.0.0.1:8000/rcp'],
    ['http://127.0.0.1:8000/', 'http://127.0.0.1:8000/rcp'],
    ['http://127.0.0.1:8000/rcp/', 'http://127.0.0.1:8000/rcp'],
    ['https://example.org/search', 'https://example.org/search/rcp'],
  ])('%s is reached at %s', (target, base) => {
    expect(baseUrlOf(target)).toBe(base);
  });

  it.each(['127.0.0.1:8000', 'ftp://example.org', ''])('%j is refused', (target) => {
    expect(() => baseUrlOf(target)).toThrow(TypeError);
  });
});

describe('a request over HTTP', () => {
  it('goes to the path of its method with the key, and info is read once', async () => {
    const server = createFakeServer();
    const client = await connect(new URL('http://fake:1'), {
      apiKey: 'secret',
      headers: { 'x-via': 'a' },
      fetch: server.fetch,
    });
    await client.sparseEmbed(['1']);
    await client.rerank('q', ['1']);
    const paths = server.seen.map(({ url }) => new URL(url).pathname);
    expect(paths).toEqual(['/rcp/info', '/rcp/embed/sparse', '/rcp/rerank']);
    expect(server.seen.map(({ headers }) => headers.get('authorization'))).toEqual(new Array(3).fill('Bearer secret'));
    expect(server.seen[1]?.headers.get('x-via')).toBe('a');
  });

  it('that is answered under another id is no answer', async () => {
    const server = createFakeServer(({ method }) =>
      method === 'info' ? undefined : Response.json({ jsonrpc: '2.0', id: 999, result: { vectors: [] } }),
    );
    const client = await server.connect();
    expect(await rejectionOf(client.embed(['1']))).toMatchObject({ errorName: 'internal' });
  });

  it('that is refused without its id rejects with that error', async () => {
    const server = createFakeServer(({ method }) =>
      method === 'info' ? undefined : Response.json({ jsonrpc: '2.0', id: null, ...failure(-32012) }, { status: 401 }),
    );
    const client = await server.connect();
    expect(await rejectionOf(client.embed(['1']))).toMatchObject({ code: -32012, errorName: 'unauthorized' });
  });

  it.each([404, 405, 400])('to what is no RCP server (HTTP %i) is an error that names the status', async (status) => {
    const server = createFakeServer(() => new Response('<html>', { status }));
    const error = await rejectionOf(server.connect());
    expect(error).toMatchObject({ errorName: 'internal', retryable: false, data: { status } });
    expect(error.message).toContain('is this the address of a server?');
  });

  it('that a proxy calls too large is halved like one that the server does', async () => {
    const server = createFakeServer(({ params }) =>
      (params['inputs'] ?? []).length > 1 ? new Response('<html>', { status: 413 }) : undefined,
    );
    const client = await server.connect();
    expect((await client.embed(['1', '2'])).usage.requests).toBe(2);
  });

  it('is never made with a key or a header that HTTP cannot carry, and the error does not repeat it', async () => {
    const { fetch, seen } = createFakeServer();
    for (const options of [{ apiKey: 'ключ' }, { apiKey: 'a\nb' }, { headers: { 'x-a': 'ключ' } }]) {
      const error = await rejectionOf(connect('http://fake', { ...options, fetch }));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).not.toMatch(/ключ|a\nb/);
    }
    expect(seen).toEqual([]);
  });

  it('has one type of content and one key, however the names of given headers are written', async () => {
    const { fetch, seen } = createFakeServer();
    const headers = { 'Content-Type': 'text/plain', Authorization: 'Basic x', Accept: 'text/html' };
    await connect('http://fake', { apiKey: 'secret', headers, fetch });
    const sent = ['content-type', 'authorization', 'accept'].map((name) => seen[0]?.headers.get(name));
    expect(sent).toEqual(['application/json', 'Bearer secret', 'application/json']);
  });

  it('reads no answer that is larger than allowed, whether it says so or not', async () => {
    const large = 'x'.repeat(10_001);
    for (const headers of [{}, { 'content-length': '10001' }] as Record<string, string>[]) {
      const server = createFakeServer(({ method }) =>
        method === 'info' ? undefined : new Response(large, { headers }),
      );
      const client = await server.connect();
      expect(await rejectionOf(client.embed(['1']))).toMatchObject({ code: -32013, data: { limit: 10_000 } });
    }
  });

  it('asks for a stream only where progress is wanted, and reads it in whatever pieces it comes', async () => {
    const notice = (progress: number) =>
      `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 2, progress } })}\n\n`;
    const answer = `data: ${JSON.stringify({
      jsonrpc: '2.0',
      id: 2,
      result: {
        vectors: [
          [1, 0, 0, 0],
          [2, 0, 0, 0],
        ],
      },
    })}\n\n`;
    const whole = notice(0.5) + notice(0.25) + answer;
    const pieces = [whole.slice(0, 30), whole.slice(30, 31), whole.slice(31, 300), whole.slice(300)];
    const server = createFakeServer(({ method }) => (method === 'info' ? undefined : stream(pieces)));
    const client = await server.connect();
    const reported: number[] = [];
    const { vectors } = await client.embed(['1', '2'], { onProgress: ({ progress }) => reported.push(progress) });
    expect(vectors).toHaveLength(2);
    expect(reported).toEqual([0.5, 1]);
    expect(server.calls()[0]).toMatchObject({ params: { _meta: { progressToken: 2 } } });
    expect(server.seen.map(({ headers }) => headers.get('accept'))).toEqual([
      'application/json',
      'application/json, text/event-stream',
    ]);
  });
});

describe('ping', () => {
  it('gives the time that the server took, and goes before requests that wait', async () => {
    const server = createFakeServer(({ method }) =>
      method === 'ping'
        ? new Promise((resolve) => server.clock.after(30, () => resolve({ result: {} })))
        : method === 'embed'
          ? new Promise(() => undefined)
          : undefined,
    );
    const client = await server.connect({ maxParallelRequests: 1 });
    const controller = new AbortController();
    const call = rejectionOf(client.embed(['1'], { signal: controller.signal }));
    const pinged = client.ping();
    await server.clock.advance(100);
    expect(await pinged).toBe(30);
    controller.abort();
    await call;
  });
});
