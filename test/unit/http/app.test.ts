import { afterEach, describe, expect, it } from 'vitest';
import { gate, reply } from './fake-service.ts';
import { createHarnesses, onlyWith, parseAnswer, post, request } from './harness.ts';

const { start, closeAll } = createHarnesses();
afterEach(closeAll);

describe('what a request reaches', () => {
  it.each([
    ['/rcp', null],
    ['/rcp/', null],
    ['/rcp/batch', null],
    ['/rcp/batch/', null],
    ['/rcp/ping', 'ping'],
    ['/rcp/ping/?x=1', 'ping'],
    ['/rcp/ping?a=/b', 'ping'],
    ['/rcp/embed/sparse', 'embed/sparse'],
    ['/rcp/embed%2Fsparse', 'embed/sparse'],
    ['/rcp/Ping', 'Ping'],
    ['/rcp/%zz', '%zz'],
    ['/rcp/toString', 'toString'],
  ])('%s names the method %s', async (path, method) => {
    const harness = await start();
    const answer = await harness.exchange(post(path, '{"a":1}'));
    expect(answer.status).toBe(200);
    expect(harness.service.calls.map(({ text, context }) => [text, context.pathMethod])).toEqual([['{"a":1}', method]]);
  });

  it.each(['/nope/ping', '/', '/rcpx', '/RCP/ping', '//rcp/ping', '/rcp/../other', '/health/other', '/health/live/'])(
    '%s is 404 with an empty body',
    async (path) => {
      const harness = await start();
      const answer = await harness.exchange(post(path));
      expect([answer.status, answer.headers.get('content-length'), answer.body]).toEqual([404, '0', '']);
      expect(harness.service.calls).toEqual([]);
    },
  );

  it.each(['GET', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'PROPFIND'])(
    '%s under the base is 405 with Allow',
    async (method) => {
      const harness = await start();
      const answer = await harness.exchange(request(method, '/rcp/info'));
      expect([answer.status, answer.headers.get('allow'), answer.body]).toEqual([405, 'POST, OPTIONS', '']);
      expect(harness.service.calls).toEqual([]);
    },
  );

  it('hands the RCP-Session header to the session store and ignores unknown headers', async () => {
    const harness = await start();
    await harness.exchange(post('/rcp/ping', '{}', { 'RCP-Session': 'abc', traceparent: '00-x', 'X-Any': '1' }));
    await harness.exchange(post('/rcp/ping', '{}'));
    expect(harness.sessionHeaders).toEqual(['abc', undefined]);
  });
});

describe('the bytes of a buffered answer', () => {
  it('are exact: status, Content-Type, Content-Length, no chunking', async () => {
    const harness = await start();
    harness.service.handle = () => reply('{"é":1}');
    const answer = await harness.exchange(post('/rcp/ping'));
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.headers.get('content-length')).toBe('8');
    expect(answer.headers.has('transfer-encoding')).toBe(false);
    expect(answer.headers.has('content-encoding')).toBe(false);
    expect(answer.headers.has('access-control-allow-origin')).toBe(false);
    expect(answer.body).toBe('{"é":1}');
  });

  it('are a 204 without a body when there is nothing to answer', async () => {
    const harness = await start();
    harness.service.handle = () => reply(null);
    const answer = await harness.exchange(post('/rcp/ping'));
    expect([answer.status, answer.body]).toEqual([204, '']);
    expect(answer.headers.has('transfer-encoding')).toBe(false);
    expect(answer.headers.has('content-type')).toBe(false);
  });

  it.each([
    [1, '1'],
    [1000, '1'],
    [1001, '2'],
  ])('carry Retry-After in whole seconds rounded up: %d ms is %s', async (retryAfterMs, seconds) => {
    const harness = await start();
    harness.service.handle = () => reply('{}', { retryAfterMs });
    const answer = await harness.exchange(post('/rcp/embed'));
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([200, seconds]);
  });

  it('keep the connection for the next request unless asked to close', async () => {
    const harness = await start();
    const connection = await harness.open();
    connection.socket.write(post('/rcp/ping', '"first"', { Connection: 'keep-alive' }));
    const first = await connection.until(/first/);
    expect(parseAnswer(first).headers.get('keep-alive')).toBe('timeout=90');
    connection.socket.write(post('/rcp/ping', '"second"', { Connection: 'close' }));
    const all = await connection.ended;
    expect(all.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
    expect(all.endsWith('{"echo":"\\"second\\""}')).toBe(true);
  });

  it('answer pipelined requests in their order', async () => {
    const harness = await start();
    const slow = gate();
    harness.service.handle = async (text) => {
      if (text === '"a"') await slow.promise;
      return reply(text);
    };
    const connection = await harness.open();
    connection.socket.write(
      Buffer.concat([
        post('/rcp/x', '"a"', { Connection: 'keep-alive' }),
        post('/rcp/x', '"b"', { Connection: 'close' }),
      ]),
    );
    await harness.service.received(2);
    slow.open();
    expect((await connection.ended).match(/"[ab]"/g)).toEqual(['"a"', '"b"']);
  });
});

describe('health and metrics', () => {
  it('live and ready need neither key nor Host check', async () => {
    const harness = await start({ identify: onlyWith('secret') });
    for (const path of ['/health/live', '/health/ready']) {
      const answer = await harness.exchange(request('GET', path, '', { Host: 'evil.example' }));
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json']);
    }
    expect((await harness.exchange('GET /health/live HTTP/1.0\r\n\r\n')).status).toBe(200);
    expect((await harness.exchange(request('HEAD', '/health/live'))).body).toBe('');
    expect((await harness.exchange(request('POST', '/health/live'))).headers.get('allow')).toBe('GET, HEAD, OPTIONS');
  });

  it('ready is 503 with the reasons while a capability is unproved, and while draining', async () => {
    let isDraining = false;
    const harness = await start({
      readiness: () => ({ isReady: isDraining, reasons: isDraining ? [] : ['embed: warming up'] }),
      isDraining: () => isDraining,
    });
    const warming = await harness.exchange(request('GET', '/health/ready'));
    expect([warming.status, JSON.parse(warming.body)]).toEqual([
      503,
      { status: 'unavailable', reasons: ['embed: warming up'] },
    ]);
    isDraining = true;
    expect((await harness.exchange(request('GET', '/health/ready'))).status).toBe(503);
    expect((await harness.exchange(request('GET', '/health/live'))).status).toBe(200);
  });

  it.each([
    [{ hasKey: false, metricsOpen: false }, undefined, 200],
    [{ hasKey: true, metricsOpen: false }, undefined, 401],
    [{ hasKey: true, metricsOpen: false }, 'Bearer secret', 200],
    [{ hasKey: true, metricsOpen: true }, undefined, 200],
  ])('metrics with %j and Authorization %s is %d', async ({ hasKey, metricsOpen }, authorization, status) => {
    const harness = await start({ metricsOpen, ...(hasKey ? { identify: onlyWith('secret') } : {}) });
    const headers: Record<string, string> = authorization === undefined ? {} : { Authorization: authorization };
    const answer = await harness.exchange(request('GET', '/metrics', '', headers));
    expect(answer.status).toBe(status);
    if (status === 200) {
      expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
      expect(answer.body).toBe('trivec_up 1\n');
    } else expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    expect((await harness.exchange(request('GET', '/metrics', '', { ...headers, Host: 'evil.example' }))).status).toBe(
      403,
    );
  });
});
