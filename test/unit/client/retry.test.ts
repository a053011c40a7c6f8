import { describe, expect, it } from 'vitest';
import { createFakeServer, failure, never, rejectionOf, type Script } from './fake-server.ts';

const onEmbed =
  (script: Script): Script =>
  (request, nth) =>
    request.method === 'info' ? undefined : script(request, nth);
/** As the client names a value that is no number of the right kind. */
const shownValue = (value: unknown) =>
  value === true ? 'a value of type boolean' : typeof value === 'string' ? JSON.stringify(value) : String(value);
const overloaded = (retryAfterMs: number) => failure(-32011, { retryable: true, retryAfterMs });

describe('a refused request', () => {
  it('is sent again after exactly the time that the server says, and no earlier', async () => {
    const server = createFakeServer(onEmbed((_, nth) => (nth < 3 ? overloaded(nth * 700) : undefined)));
    const client = await server.connect();
    const call = client.embed(['1']);
    await server.clock.advance(699);
    expect(server.calls()).toHaveLength(1);
    await server.clock.advance(10_000);
    expect((await call).usage).toMatchObject({ retries: 2, requests: 1 });
    expect(server.calls().map(({ atMs }) => atMs)).toEqual([0, 700, 2100]);
  });

  it('waits a little longer by chance, never shorter', async () => {
    const server = createFakeServer(onEmbed((_, nth) => (nth === 1 ? overloaded(1000) : undefined)));
    const client = await server.connect({}, () => 1);
    const call = client.embed(['1']);
    await server.clock.advance(10_000);
    await call;
    expect(server.calls()[1]?.atMs).toBe(1250);
  });

  it('is never sent more often than allowed, and then rejects with the last error', async () => {
    const server = createFakeServer(onEmbed(() => overloaded(10)));
    const client = await server.connect({ retry: { maxAttempts: 4 } });
    const call = rejectionOf(client.embed(['1']));
    await server.clock.advance(100_000);
    expect(await call).toMatchObject({ code: -32011, errorName: 'overloaded', retryable: true });
    expect(server.calls()).toHaveLength(4);
  });

  it('is bounded by the defaults where a bound is given as undefined', async () => {
    const server = createFakeServer(onEmbed(() => overloaded(0)));
    const retry = { maxAttempts: undefined, maxWaitMs: undefined } as object;
    const client = await server.connect({ retry });
    const call = rejectionOf(client.embed(['1']));
    await server.clock.advance(1000);
    expect(await call).toMatchObject({ errorName: 'overloaded' });
    expect(server.calls()).toHaveLength(6);
  });

  it('is given up at once where the wait would be longer than all waits may be', async () => {
    const server = createFakeServer(onEmbed(() => overloaded(61_000)));
    const client = await server.connect();
    expect(await rejectionOf(client.embed(['1']))).toMatchObject({ code: -32011, data: { retryAfterMs: 61_000 } });
    expect(server.clock.pendingTimers()).toBe(0);
  });

  it.each([-32602, -32603, -32005, -32012])('is not sent again after %i', async (code) => {
    const server = createFakeServer(onEmbed(() => failure(code, { retryable: false })));
    const client = await server.connect();
    expect(await rejectionOf(client.embed(['1']))).toMatchObject({ code, retryable: false, wasSent: true });
    expect(server.calls()).toHaveLength(1);
  });

  it('waits twice as long each time where the connection fails', async () => {
    const server = createFakeServer(
      onEmbed((_, nth) => (nth < 4 ? Promise.reject(new TypeError('refused')) : undefined)),
    );
    const client = await server.connect();
    const call = client.embed(['1']);
    await server.clock.advance(10_000);
    await call;
    expect(server.calls().map(({ atMs }) => atMs)).toEqual([0, 100, 300, 700]);
  });

  it('by a proxy that says when is sent again then', async () => {
    const busy = () => new Response('<html>', { status: 503, headers: { 'retry-after': '2' } });
    const server = createFakeServer(onEmbed((_, nth) => (nth === 1 ? busy() : undefined)));
    const client = await server.connect();
    const call = client.embed(['1']);
    await server.clock.advance(10_000);
    await call;
    expect(server.calls()[1]?.atMs).toBe(2000);
  });

  it.each([
    [
      'by the clock of the server',
      { date: 'Sun, 06 Nov 2094 08:49:37 GMT', 'retry-after': 'Sun, 06 Nov 2094 08:49:40 GMT' },
      3000,
    ],
    ['that has passed', { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }, 0],
    ['that is none', { 'retry-after': 'soon' }, 100],
    ['that is empty', { 'retry-after': '' }, 100],
    ['in a form of another clock', { 'retry-after': '-5' }, 100],
  ])('by a proxy that names a date %s is sent again then', async (_, headers, waitMs) => {
    const busy = () => new Response('<html>', { status: 429, headers: headers as Record<string, string> });
    const server = createFakeServer(onEmbed((__, nth) => (nth === 1 ? busy() : undefined)));
    const client = await server.connect();
    const call = client.embed(['1']);
    await server.clock.advance(10_000);
    await call;
    expect(server.calls()[1]?.atMs).toBe(waitMs);
  });

  it('counts as lost when no answer comes, and is sent again', async () => {
    const server = createFakeServer(onEmbed((_, nth) => (nth === 1 ? never() : undefined)));
    const client = await server.connect({ answerTimeoutMs: 1000 });
    const call = client.embed(['1']);
    await server.clock.advance(10_000);
    await call;
    expect(server.calls().map(({ atMs, signal }) => [atMs, signal.aborted])).toEqual([
      [0, true],
      [1100, false],
    ]);
  });

  it('is info too: a server that is about to start is waited for', async () => {
    const server = createFakeServer(({ method }, nth) =>
      method === 'info' && nth === 1 ? Promise.reject(new TypeError('refused')) : undefined,
    );
    const connecting = server.connect();
    await server.clock.advance(1000);
    expect((await connecting).identity('embed')).toBe('plain@1');
  });
});

describe('a deadline', () => {
  it('is told to the server, less what has passed', async () => {
    const server = createFakeServer(onEmbed((_, nth) => (nth === 1 ? overloaded(400) : undefined)));
    const client = await server.connect();
    const call = client.embed(['1'], { deadlineMs: 1000 });
    await server.clock.advance(1000);
    await call;
    expect(server.calls().map(({ params }) => params['_meta'].deadlineMs)).toEqual([1000, 600]);
  });

  it('ends a call that gets no answer', async () => {
    const server = createFakeServer(onEmbed(never));
    const client = await server.connect();
    const call = rejectionOf(client.embed(['1', '2'], { deadlineMs: 1000 }));
    await server.clock.advance(1000);
    expect(await call).toMatchObject({ code: -32014, errorName: 'deadlineExceeded' });
    expect(server.calls().map(({ signal }) => signal.aborted)).toEqual([true]);
    expect(server.clock.pendingTimers()).toBe(0);
  });

  it('that a wait would outlast ends the call without the wait', async () => {
    const server = createFakeServer(onEmbed(() => overloaded(2000)));
    const client = await server.connect();
    const error = await rejectionOf(client.embed(['1', '2'], { deadlineMs: 1000 }));
    expect(error).toMatchObject({ code: -32014, cause: { code: -32011 } });
    expect(server.calls()).toHaveLength(1);
  });

  it.each([0, -5, NaN, -Infinity, '10000', null, true])(
    'of %s is none: refused before anything is sent',
    async (given) => {
      const server = createFakeServer();
      const client = await server.connect();
      const options = { deadlineMs: given as number };
      const calls = [
        client.embed(['1'], options),
        client.sparseEmbed(['1'], options),
        client.multiVector(['1'], options),
        client.rerank('q', ['1'], options),
        client.ping(options),
      ];
      for (const call of calls) {
        const error = await rejectionOf(call);
        expect(error).toMatchObject({ errorName: 'invalidParams', wasSent: false, data: { field: 'deadlineMs' } });
        expect(error.message).toBe(`deadlineMs: must be a number above 0, not ${shownValue(given)}`);
      }
      expect(server.calls()).toEqual([]);
    },
  );

  it('of Infinity is none for the server', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    expect((await client.embed(['1'], { deadlineMs: Infinity })).vectors).toHaveLength(1);
    expect(server.calls()[0]?.params).not.toHaveProperty('_meta');
  });
});

describe('a signal', () => {
  it('stops every request of the call, those that wait too, and leaves nothing behind', async () => {
    const server = createFakeServer(
      onEmbed(({ params }) => (params['inputs'].includes('1') ? overloaded(500) : never())),
    );
    const client = await server.connect({ maxParallelRequests: 2 });
    const controller = new AbortController();
    const texts = Array.from({ length: 20 }, (_, index) => String(index + 1));
    const call = rejectionOf(client.embed(texts, { signal: controller.signal }));
    await server.clock.advance(100);
    controller.abort();
    expect((await call).name).toBe('AbortError');
    await server.clock.advance(100_000);
    expect(server.calls()).toHaveLength(2);
    expect(server.calls()[1]?.signal.aborted).toBe(true);
    expect(server.clock.pendingTimers()).toBe(0);
  });

  it('that is aborted already sends nothing', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    const error = await rejectionOf(client.embed(['1'], { signal: AbortSignal.abort() }));
    expect([error.name, server.calls().length]).toEqual(['AbortError', 0]);
  });

  it('rejects with its own reason where that is an error, else with an AbortError that has it as its cause', async () => {
    const client = await createFakeServer().connect();
    const reason = new Error('enough');
    expect(await rejectionOf(client.embed(['1'], { signal: AbortSignal.abort(reason) }))).toBe(reason);
    const other = await rejectionOf(client.embed(['1'], { signal: AbortSignal.abort('enough') }));
    expect(other).toMatchObject({ name: 'AbortError', cause: 'enough' });
  });

  it('stops connecting', async () => {
    const server = createFakeServer(never);
    const controller = new AbortController();
    const connecting = rejectionOf(server.connect({ signal: controller.signal }));
    await server.clock.advance(10);
    controller.abort();
    expect((await connecting).name).toBe('AbortError');
  });
});
