import { describe, expect, it } from 'vitest';
import { connect } from '../../../src/client/browser.ts';
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

  const streaming = (pieces: (id: number) => readonly string[]) =>
    createFakeServer(({ method, id }, nth) =>
      method === 'info' ? undefined : nth === 1 ? stream(pieces(id)) : undefined,
    );
  const event = (frame: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n\n`;
  const vectors = [[7, 0, 0, 0]];
  const message = { method: 'notifications/message', params: { level: 'info' } };

  it.each([
    [
      'events before its answer',
      (id: number) => [event({ method: 'notifications/progress', params: { progressToken: id, progress: 0.5 } })],
    ],
    ['no event', () => []],
    ['half an event', (id: number) => [event({ id, result: { vectors } }).slice(0, 40)]],
    ['the answer to another request', () => [event({ id: 999, result: { vectors: [[9, 0, 0, 0]] } })]],
  ])('that gets a stream of %s, and then its end, is sent again', async (_, pieces) => {
    const server = streaming(pieces);
    const client = await server.connect();
    const call = client.embed(['1'], { onProgress: () => undefined });
    await server.clock.advance(1000);
    expect((await call).usage.retries).toBe(1);
    expect(server.calls()).toHaveLength(2);
  });

  it.each([
    ['a notification comes behind it', (id: number) => [event({ id, result: { vectors } }), event(message)]],
    [
      'an answer to another comes behind it',
      (id: number) => [event({ id, result: { vectors } }), event({ id: 999, result: {} })],
    ],
    ['nothing ends its line', (id: number) => [event(message), event({ id, result: { vectors } }).trimEnd()]],
  ])('has its answer in a stream, where %s too', async (_, pieces) => {
    const client = await streaming(pieces).connect();
    const { vectors: got, usage } = await client.embed(['1'], { onProgress: () => undefined });
    expect([[...got[0]!], usage.retries]).toEqual([[7, 0, 0, 0], 0]);
  });

  it.each(['', '{"jsonrpc":"2.0","id":2,"resu'])('whose answer is cut to %j is sent again', async (cut) => {
    const headers = { 'content-type': 'application/json' };
    const server = createFakeServer(({ method }, nth) =>
      method !== 'info' && nth === 1 ? new Response(cut, { headers }) : undefined,
    );
    const client = await server.connect();
    const call = client.embed(['1']);
    await server.clock.advance(1000);
    expect((await call).usage.retries).toBe(1);
  });

  it('that a gateway refuses in JSON of its own is told by its status', async () => {
    const refuse = (status: number) => createFakeServer(() => Response.json({ error: { message: 'no' } }, { status }));
    expect(await rejectionOf(refuse(401).connect())).toMatchObject({
      errorName: 'unauthorized',
      data: { status: 401 },
    });
    expect(await rejectionOf(refuse(404).connect())).toMatchObject({ errorName: 'internal', data: { status: 404 } });
    const busy = refuse(429).connect({ retry: { maxAttempts: 1 } });
    expect(await rejectionOf(busy)).toMatchObject({ errorName: 'overloaded', retryable: true });
  });

  it('that finds no connection says why', async () => {
    const failed = new TypeError('fetch failed', {
      cause: Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO' }),
    });
    const server = createFakeServer(() => Promise.reject(failed));
    const error = await rejectionOf(server.connect({ retry: { maxAttempts: 1 } }));
    expect(error).toMatchObject({ errorName: 'unavailable', cause: failed });
    expect(error.message).toMatch(/no connection, .* \(self-signed certificate, DEPTH_ZERO\)$/);
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
