import { describe, expect } from 'vitest';
import { embedding, failure, notification, ok, pong, request, vectors } from '../support/harness/frames.ts';
import { eventsOf } from '../support/harness/http-client.ts';
import { answers, onHttp, onStdio } from '../support/harness/rows.ts';

const slow = ['slow:20', 'slow:20', 'slow:20', 'a'];
const withToken = (token: unknown, inputs: unknown[] = slow) =>
  request(1, 'embed', { inputs, _meta: { progressToken: token } });
const withRawToken = (rawToken: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"embed","params":{"inputs":["a","b"],"_meta":{"progressToken":${rawToken}}}}`;
const read = (lines: readonly string[]) =>
  lines.map((line) => JSON.parse(line) as { id?: unknown; method?: string; params?: Record<string, unknown> });
const eventStream = { Accept: 'text/event-stream' };
const progressOf = (lines: readonly string[]) =>
  read(lines).flatMap(({ method, params }) => (method === 'notifications/progress' && params ? [params] : []));
const isRising = (values: number[]) =>
  values.every((value, index) => value >= 0 && value <= 1 && value >= (values[index - 1] ?? 0));

describe('1.M progress on stdio', () => {
  onStdio('PG-01 without a token there is no progress, whatever the client can do', async (client) => {
    await answers(client, embedding(1, ...slow), ok(1));
    expect(client.lines).toHaveLength(2);
  });

  onStdio('PG-02 progress carries the token, rises from 0 to 1 and comes before the answer', async (client) => {
    for (const rawToken of ['"t"', '7', '9007199254740993', '"\\u0041"', '""', '-1', '0']) {
      const from = client.lines.length;
      await answers(client, withRawToken(rawToken), vectors(1, [97, 0, 0, 0], [98, 0, 0, 0]));
      const lines = client.lines.slice(from);
      expect(lines.length).toBeGreaterThan(1);
      expect(lines.slice(0, -1).every((line) => line.includes(`"progressToken":${rawToken},`))).toBe(true);
      expect(isRising(progressOf(lines).map(({ progress }) => Number(progress)))).toBe(true);
      expect(read(lines).at(-1)).toMatchObject({ id: 1, result: {} });
    }
    await answers(client, request(2, 'ping'), pong(2));
    expect(read(client.lines).at(-2)).toMatchObject({ id: 1, result: {} });
  });

  onStdio('PG-02 every method that runs texts reports progress', async (client) => {
    const meta = { _meta: { progressToken: 't' } };
    for (const [method, params] of [
      ['embed/sparse', { inputs: ['a', 'b'] }],
      ['embed/multi', { inputs: ['a', 'b'] }],
      ['rerank', { query: 'a', passages: ['a', 'b'] }],
    ] as const) {
      const from = client.lines.length;
      await answers(client, request(1, method, { ...params, ...meta }), ok(1));
      expect(progressOf(client.lines.slice(from)).length, method).toBeGreaterThan(0);
    }
  });

  onStdio('PG-02 a call that fails is answered all the same, after its progress', async (client) => {
    await answers(client, withToken('t', ['a', 'b', 'boom']), failure(1, -32603));
    expect(read(client.lines).at(-1)).toMatchObject({ id: 1 });
    await answers(client, embedding(2, 'a'), ok(2));
    expect(read(client.lines).at(-2)).toMatchObject({ id: 1 });
  });

  onStdio('PG-03 a token of another type gives no frames and no error', async (client) => {
    for (const rawToken of ['{}', 'true', '1.5', 'null', '[1]', '1e400', '1.0']) {
      const from = client.lines.length;
      await answers(client, withRawToken(rawToken), ok(1));
      expect(client.lines.length - from, rawToken).toBe(1);
    }
  });

  onStdio('PG-04 a frame holds token, progress and texts, and no partial result', async (client) => {
    await client.ask(withToken('t'));
    for (const params of progressOf(client.lines)) {
      expect(
        Object.keys(params).filter((name) => !['progressToken', 'progress', 'stage', 'message'].includes(name)),
      ).toEqual([]);
      expect(typeof params['stage']).toBe('string');
    }
  });

  onStdio('PG-05 what the conformance client sends is answered by exactly one line each', async (client) => {
    let expected = client.lines.length;
    for (const frame of [
      request(0, 'info', {}),
      request(100, 'ping', { nonce: 777 }),
      request(1, 'retrieve', { query: 'x', k: 1 }),
      request(10, 'rerank', { query: 'test', documents: ['a b c', 'd e f'], topN: 2 }),
      embedding(11, 'a', 'b'),
    ]) {
      await client.ask(frame);
      expect(client.lines).toHaveLength((expected += 1));
    }
  });
});

describe('1.M event streams', () => {
  onHttp('SS-01 a stream only where Accept names it, next to JSON only with a token', async (client) => {
    const table: [string | null, boolean, string][] = [
      ['text/event-stream', false, 'text/event-stream'],
      ['text/event-stream', true, 'text/event-stream'],
      ['TEXT/Event-Stream;q=0.5', true, 'text/event-stream'],
      ['application/json, text/event-stream', true, 'text/event-stream'],
      ['application/json, text/event-stream', false, 'application/json'],
      ['text/event-stream, */*;q=0.1', false, 'application/json'],
      ['text/event-stream;q=0, application/json', true, 'application/json'],
      ['text/event-stream;q=0', true, 'application/json'],
      ['*/*', true, 'application/json'],
      ['text/*', true, 'application/json'],
      ['application/x-text/event-stream', true, 'application/json'],
      [null, true, 'application/json'],
    ];
    for (const [accept, hasToken, expected] of table) {
      const frame = hasToken ? withToken('t', ['a']) : embedding(1, 'a');
      const { status, headers, body } = await client.post('/rcp/embed', frame, { Accept: accept });
      expect([accept, status, headers['content-type']]).toEqual([accept, 200, expected]);
      const answer = expected === 'application/json' ? body : (eventsOf(body).at(-1) ?? '');
      expect(JSON.parse(answer)).toMatchObject(vectors(1, [97, 0, 0, 0]));
    }
  });

  onHttp('SS-02 a stream is data frames only: progress, one answer, the end', async (client) => {
    const { body } = await client.post('/rcp/embed', withToken('t'), eventStream);
    expect(body).toMatch(/^(data: \{.*\}\n\n)+$/);
    const events = eventsOf(body);
    expect(progressOf(events)).toHaveLength(events.length - 1);
    expect(events.length).toBeGreaterThan(1);
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject(ok(1));
    const plain = await client.post('/rcp/ping', request(1, 'ping'), eventStream);
    expect(plain.body).toBe('data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n');
  });

  onHttp('SS-03 an error is the last frame of a stream, status 200', async (client) => {
    for (const [frame, expected] of [
      [embedding(1, 'boom'), failure(1, -32603)],
      [embedding(1, 5), failure(1, -32602)],
      [request(1, 'no/such'), failure(1, -32004)],
      ['x', failure(null, -32700)],
    ] as const) {
      const { status, body } = await client.post('/rcp', frame, eventStream);
      expect(status).toBe(200);
      const events = eventsOf(body);
      expect(events).toHaveLength(1);
      expect(JSON.parse(events[0] ?? '')).toMatchObject(expected);
    }
  });

  onHttp('SS-04 a notification is 204 under an event stream too', async (client) => {
    const { status, body } = await client.post('/rcp/embed', notification('embed', { inputs: ['a'] }), eventStream);
    expect([status, body]).toEqual([204, '']);
  });

  onHttp('SS-05 whoever does not ask for a stream gets one buffered answer', async (client) => {
    const { headers, body } = await client.post('/rcp/embed', withToken('t'), { Accept: 'application/json' });
    expect([headers['content-type'], headers['content-length']]).toEqual([
      'application/json',
      String(Buffer.byteLength(body)),
    ]);
    expect(JSON.parse(body)).toMatchObject(ok(1));
  });

  onHttp('SS-06 nothing buffers a stream: its first frame comes before the last input is done', async (client) => {
    const { headers } = await client.post('/rcp/embed', withToken('t', ['a']), eventStream);
    expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'x-accel-buffering': 'no' });
    const { socket, ended } = await client.open();
    // The longest text runs first.
    const body = withToken('t', ['a text of more tokens than the other one has', 'slow:1500']);
    const first = new Promise<number>((resolve) => socket.once('data', () => resolve(performance.now())));
    socket.write(
      `POST /rcp/embed HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: text/event-stream\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(await ended).toContain('"result"');
    expect(performance.now() - (await first)).toBeGreaterThan(700);
  });
});

describe('1.M log', () => {
  const call = (level?: unknown, text = 'a') => request(1, 'embed', { inputs: [text], _meta: { logLevel: level } });
  const logsOf = (lines: readonly string[]) =>
    read(lines).flatMap(({ method, params }) => (method === 'notifications/log' && params ? [params] : []));
  const opened = (params: object) => request(0, 'initialize', { protocolVersion: 1, ...params });
  const fresh = { isFresh: true };

  onStdio('LG-01 without an opt-in there is no log frame', async (client) => {
    for (const frame of [embedding(1, 'a'), embedding(2, 'boom'), request(3, 'no/such'), embedding(4, 'down')])
      await client.ask(frame);
    expect(logsOf(client.lines)).toEqual([]);
  });

  onStdio('LG-01 an opt-in on a request holds for that request', async (client) => {
    await answers(client, call('debug'), ok(1));
    const count = logsOf(client.lines).length;
    expect(count).toBeGreaterThan(0);
    await answers(client, embedding(2, 'a'), ok(2));
    expect(logsOf(client.lines)).toHaveLength(count);
  });

  for (const params of [{ capabilities: { log: {} } }, { _meta: { logLevel: 'info' } }]) {
    onStdio(
      `LG-01 an opt-in in initialize holds for the session (${JSON.stringify(params)})`,
      async (client) => {
        await answers(client, opened(params), ok(0));
        await answers(client, embedding(1, 'a'), ok(1));
        expect(logsOf(client.lines).length).toBeGreaterThan(0);
      },
      fresh,
    );
  }

  onStdio('LG-02 the least level is honoured, an unknown one is ignored', async (client) => {
    await answers(client, call('error'), ok(1));
    for (const level of ['loud', 5, null, {}, 'INFO']) await answers(client, call(level), ok(1));
    expect(logsOf(client.lines)).toEqual([]);
    await answers(client, call('error', 'boom'), failure(1, -32603));
    expect(logsOf(client.lines).every(({ level }) => level === 'error')).toBe(true);
    await answers(client, call('info'), ok(1));
    expect(logsOf(client.lines).length).toBeGreaterThan(0);
  });

  onStdio('LG-03 a log frame has a level, a message and an object of data, and no text of a caller', async (client) => {
    await client.ask(call('debug', 'correct-horse'));
    const logs = logsOf(client.lines);
    expect(logs.length).toBeGreaterThan(0);
    for (const log of logs) expect(log).toMatchObject({ level: expect.any(String), message: expect.any(String) });
    expect(JSON.stringify(logs)).not.toContain('correct-horse');
  });

  onHttp('LG-04 there are no log frames over HTTP', async (client) => {
    const frame = request(1, 'embed', { inputs: ['a', 'b'], _meta: { logLevel: 'debug', progressToken: 't' } });
    const { body } = await client.post('/rcp/embed', frame, eventStream);
    expect(body).toContain('notifications/progress');
    expect(body).not.toContain('notifications/log');
  });
});
