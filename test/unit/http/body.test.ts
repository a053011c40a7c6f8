import { afterEach, describe, expect, it } from 'vitest';
import { gate, reply } from './fake-service.ts';
import { bodyBytes, createHarnesses, onlyWith, parseAnswer, post } from './harness.ts';

const { start, closeAll } = createHarnesses();
afterEach(closeAll);

describe('bodies', () => {
  it.each([
    ['one BOM is stripped', Buffer.from('\ufeff{"id":1}'), '{"id":1}'],
    ['of two BOMs one stays', Buffer.from('\ufeff\ufeff1'), '\ufeff1'],
    ['an empty body is an empty text', Buffer.alloc(0), ''],
    ['a pretty-printed body is left alone', Buffer.from('{\r\n  "id": 1\r\n}\n'), '{\r\n  "id": 1\r\n}\n'],
    ['U+2028 is an ordinary character', Buffer.from('"\u2028"'), '"\u2028"'],
  ])('%s', async (_, body, text) => {
    const harness = await start();
    await harness.exchange(post('/rcp/ping', body));
    expect(harness.service.calls.map((call) => call.text)).toEqual([text]);
  });

  it('bytes that are not UTF-8 are -32700 with id null, and are not handled', async () => {
    const harness = await start();
    const body = Buffer.concat([Buffer.from('{"id":1,"x":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    const answer = await harness.exchange(post('/rcp/ping', body));
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toMatchObject({ id: null, error: { code: -32700 } });
    expect(harness.service.calls).toEqual([]);
  });

  it('a chunked upload is read, also with a character split over two chunks', async () => {
    const harness = await start();
    const connection = await harness.open();
    connection.socket.write(
      'POST /rcp/ping HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n',
    );
    connection.socket.write(Buffer.concat([Buffer.from('2\r\n"'), Buffer.from([0xc3]), Buffer.from('\r\n')]));
    connection.socket.write(Buffer.concat([Buffer.from('2\r\n'), Buffer.from([0xa9]), Buffer.from('"\r\n0\r\n\r\n')]));
    expect(parseAnswer(await connection.ended).status).toBe(200);
    expect(harness.service.calls[0]?.text).toBe('"é"');
  });

  it('a client that waits for 100 Continue gets it, others do not', async () => {
    const harness = await start();
    const connection = await harness.open();
    connection.socket.write(
      'POST /rcp/ping HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n',
    );
    await connection.until(/100 Continue\r\n\r\n/);
    connection.socket.write('{}');
    expect(await connection.ended).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
    expect(
      parseAnswer(
        await (async () => {
          const plain = await harness.open();
          plain.socket.write(post('/rcp/ping'));
          return plain.ended;
        })(),
      ).status,
    ).toBe(200);
  });

  it.each([
    ['a length over the limit', {}, { 'Content-Length': String(bodyBytes + 1) }, 200, '"code":-32013'],
    ['a missing key', { identify: onlyWith('key') }, {}, 401, '"code":-32012'],
    ['a packed body', {}, { 'Content-Encoding': 'gzip' }, 415, ''],
    ['a Host of another server', {}, { Host: 'evil.example' }, 403, ''],
    ['a server that leaves', { isDraining: () => true }, {}, 200, '"code":-32010'],
  ])(
    'a client that waits for 100 Continue gets the refusal of %s in its place, and the connection ends',
    async (_, options, headers, status, body) => {
      const harness = await start(options);
      const connection = await harness.open();
      const all = { Connection: 'keep-alive', Expect: '100-continue', 'Content-Length': '2', ...headers };
      connection.socket.write(post('/rcp/ping', '', all));
      const text = await connection.ended;
      expect(text).not.toContain('100 Continue');
      const answer = parseAnswer(text);
      expect([answer.status, answer.headers.get('connection')]).toEqual([status, 'close']);
      expect(answer.body).toContain(body);
      expect(harness.service.calls).toEqual([]);
    },
  );

  it('a connection that waited for 100 Continue and got it is kept', async () => {
    const harness = await start();
    const connection = await harness.open();
    const keep = { Connection: 'keep-alive' };
    connection.socket.write(post('/rcp/ping', '', { ...keep, Expect: '100-continue', 'Content-Length': '2' }));
    await connection.until(/100 Continue\r\n\r\n/);
    connection.socket.write('{}');
    await connection.until(/200 OK[^]*\r\n\r\n./);
    connection.socket.write(post('/rcp/ping', '"next"'));
    expect(await connection.ended).toContain('next');
  });

  it('one behind a request that has no answer yet is answered whole, with nothing in the middle', async () => {
    const harness = await start();
    const { promise: hasAll, open: answerFirst } = gate();
    const echo = (text: string) => reply(JSON.stringify({ echo: text }));
    harness.service.handle = async (text) => {
      if (text === '"a"') await hasAll;
      return echo(text);
    };
    const connection = await harness.open();
    const keep = { Connection: 'keep-alive' };
    const waiting = { ...keep, Expect: '100-continue' };
    const [first, second] = ['"a"', '"b"'];
    connection.socket.write(Buffer.concat([post('/rcp/ping', first, keep), post('/rcp/ping', second, waiting)]));
    await harness.service.received(2);
    answerFirst();
    let left = await connection.ended;
    const bodies: string[] = [];
    while (left !== '') {
      const end = left.indexOf('\r\n\r\n') + 4;
      const length = Number(/content-length: (\d+)/i.exec(left.slice(0, end))?.[1] ?? 0);
      if (!left.startsWith('HTTP/1.1 100')) bodies.push(left.slice(end, end + length));
      left = left.slice(end + length);
    }
    const echoes = bodies.map((body) => (JSON.parse(body) as { echo: string }).echo);
    // Node ends a connection on which a sender waited for leave that it never got.
    expect(echoes).toEqual([first, second]);
  });

  it.each([
    ['gzip', 415],
    ['br', 415],
    ['GZIP', 415],
    ['x-unknown', 415],
    ['identity, gzip', 415],
    ['identity', 200],
    ['Identity', 200],
  ])('Content-Encoding %s is %d before a byte is unpacked', async (encoding, status) => {
    const harness = await start();
    const answer = await harness.exchange(post('/rcp/ping', '{}', { 'Content-Encoding': encoding }));
    expect(answer.status).toBe(status);
    if (status === 415) expect(answer.body).toBe('');
    expect(harness.service.calls).toHaveLength(status === 200 ? 1 : 0);
  });

  it('needs no Content-Type', async () => {
    const harness = await start();
    expect((await harness.exchange(post('/rcp/ping', '{}', { 'Content-Type': 'text/plain' }))).status).toBe(200);
  });
});

describe('a body over the limit', () => {
  const chunked = (text: string) =>
    Buffer.from(
      'POST /rcp/embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n' +
        `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
    );
  const sized = (text: string) => post('/rcp/embed', text, { Connection: 'keep-alive' });

  it.each([
    ['with Content-Length', sized],
    ['chunked', chunked],
  ])('%s: the limit passes, one byte more is -32013 and closes', async (_, make) => {
    const harness = await start();
    const fits = await harness.open();
    fits.socket.write(make('x'.repeat(bodyBytes)));
    await fits.until(/echo/);
    const answer = await harness.exchange(make('x'.repeat(bodyBytes + 1)));
    expect(answer.status).toBe(200);
    expect(answer.headers.get('connection')).toBe('close');
    expect(JSON.parse(answer.body)).toMatchObject({ id: null, error: { code: -32013, data: { retryable: false } } });
    expect(harness.service.calls).toHaveLength(1);
    expect(harness.refused).toEqual(['tooLarge']);
  });

  it('is answered, not reset, when the client reads only after writing all of it', async () => {
    const harness = await start({ limits: { bodyBytes: 1_000_000, bodyTimeoutMs: 10_000 } });
    const connection = await harness.open();
    connection.socket.pause();
    const body = 'x'.repeat(20_000_000);
    await new Promise<void>((resolve) => connection.socket.write(post('/rcp/embed', body), () => resolve()));
    connection.socket.resume();
    expect(JSON.parse(parseAnswer(await connection.ended).body)).toMatchObject({ error: { code: -32013 } });
  });

  it('costs the connection also where it is refused for another reason', async () => {
    const harness = await start();
    const answer = await harness.exchange(post('/nope', 'x'.repeat(bodyBytes + 1), { Connection: 'keep-alive' }));
    expect([answer.status, answer.headers.get('connection')]).toEqual([404, 'close']);
  });

  it('beats a wrong key, which is answered only for a body that fits', async () => {
    const harness = await start({ identify: onlyWith('secret') });
    const tooLong = await harness.exchange(
      post('/rcp/embed', 'x'.repeat(bodyBytes * 50), { Authorization: 'Bearer no' }),
    );
    expect(JSON.parse(tooLong.body)).toMatchObject({ error: { code: -32013 } });
    const fits = await harness.exchange(post('/rcp/embed', '{"id":3}', { Authorization: 'Bearer no' }));
    expect(JSON.parse(fits.body)).toMatchObject({ id: 3, error: { code: -32012 } });
  });
});
