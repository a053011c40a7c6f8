import { describe, expect } from 'vitest';
import { openHttp } from '../../src/server.ts';
import { settingsSchema } from '../../src/config/settings.ts';
import { batch, embedding, failure, notification, ok, pong, request } from '../support/harness/frames.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { answers, onHttp } from '../support/harness/rows.ts';

const ping = request(1, 'ping');
const read = ({ status, body }: HttpAnswer): unknown => ({
  status,
  value: body === '' ? null : (JSON.parse(body) as unknown),
});
const answered = (value: object) => ({ status: 200, value });
const head = (path: string, lines: readonly string[]) =>
  `POST ${path} HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
const bodyOf = (text: string) => text.split('\r\n\r\n').slice(1).join('\r\n\r\n');
const chunked = (text: string, size: number) => {
  const chunks = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
  return `${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`;
};

describe('1.N HTTP: paths and verbs', () => {
  onHttp('H-01 a method may stand in the path, with its slashes', async (client) => {
    for (const method of ['embed', 'embed/sparse', 'embed/multi']) {
      expect(read(await client.post(`/rcp/${method}`, request(1, method, { inputs: ['a'] })))).toMatchObject(
        answered(ok(1)),
      );
    }
    expect(read(await client.post('/rcp/info', request(1, 'info')))).toMatchObject(answered(ok(1)));
  });

  onHttp('H-02 a path that names another method is -32600 under the id, and nothing runs', async (client, server) => {
    expect(read(await client.post('/rcp/embed', ping))).toMatchObject(answered(failure(1, -32600)));
    const before = server.engine.batches.length;
    for (const path of ['/rcp/ping', '/rcp/embed/sparse', '/rcp/EMBED', '/rcp/embed//', '/rcp/%65mbed/x']) {
      expect(read(await client.post(path, embedding('k', 'a')))).toMatchObject(answered(failure('k', -32600)));
    }
    expect(server.engine.batches.length).toBe(before);
  });

  onHttp('H-03 the bare base names no method', async (client) => {
    for (const path of ['/rcp', '/rcp/']) expect(read(await client.post(path, ping))).toMatchObject(answered(pong(1)));
  });

  onHttp('H-04 query and one trailing slash are ignored, escapes are read, case counts', async (client) => {
    for (const path of ['/rcp/ping/?x=1', '/rcp/ping?', '/rcp/%70ing', '/rcp/ping/']) {
      expect(read(await client.post(path, ping)), path).toMatchObject(answered(pong(1)));
    }
    const sparse = request(1, 'embed/sparse', { inputs: ['a'] });
    for (const path of ['/rcp/embed%2Fsparse', '/rcp/embed%2fsparse', '/rcp/embed/sparse?inputs=x']) {
      expect(read(await client.post(path, sparse)), path).toMatchObject(answered(ok(1)));
    }
    expect(read(await client.post('/rcp/%zz', ping))).toMatchObject(answered(failure(1, -32600)));
    expect(read(await client.post('/rcp/Ping', ping))).toMatchObject(answered(failure(1, -32600)));
  });

  onHttp('H-05 another base is 404 without a body', async (client) => {
    for (const path of ['/nope/ping', '/rcpx/ping', '/RCP/ping', '/rcp2', '/x/rcp/ping']) {
      expect(read(await client.post(path, ping)), path).toEqual({ status: 404, value: null });
    }
  });

  onHttp('H-06 another verb is 405 with Allow and without a body', async (client) => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'HEAD']) {
      const { status, headers, body } = await client.exchange(method, '/rcp/info', method === 'PUT' ? ping : '');
      expect([method, status, headers.allow, body]).toEqual([method, 405, 'POST, OPTIONS', '']);
    }
  });
});

describe('1.N HTTP: answers', () => {
  onHttp('H-07 a JSON-RPC answer is 200 and exactly application/json, errors too', async (client) => {
    for (const frame of [
      ping,
      'x',
      '[]',
      '{}',
      request(1, 'no/such'),
      embedding(1, 'boom'),
      batch(ping),
      embedding(1, 5),
    ]) {
      const { status, headers } = await client.post('/rcp', frame);
      expect([status, headers['content-type']]).toEqual([200, 'application/json']);
    }
  });

  onHttp('H-08 a buffered answer has its length and is neither chunked nor packed nor a redirect', async (client) => {
    for (const frame of [
      ping,
      request(1, 'info'),
      embedding(1, 'a'.repeat(2000)),
      request(1, 'embed/multi', { inputs: ['x'.repeat(3000)] }),
    ]) {
      const { headers, body } = await client.post('/rcp', frame, {
        'Accept-Encoding': 'gzip, br',
        TE: 'trailers, chunked',
      });
      expect(headers['content-length']).toBe(String(Buffer.byteLength(body)));
      expect([headers['transfer-encoding'], headers['content-encoding'], headers.location]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    }
    const text = await client.exchangeBytes(
      head('/rcp', ['Host: 127.0.0.1', 'Connection: close', `Content-Length: ${ping.length}`]) + ping,
    );
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  });

  onHttp('H-09 Connection: close ends the connection with the answer, otherwise it is kept', async (client) => {
    const lines = ['Host: 127.0.0.1', `Content-Length: ${ping.length}`];
    const started = performance.now();
    const text = await client.exchangeBytes(head('/rcp/ping', [...lines, 'Connection: close']) + ping);
    expect(JSON.parse(bodyOf(text))).toMatchObject(pong(1));
    expect(performance.now() - started).toBeLessThan(2000);
    const twice = head('/rcp/ping', lines) + ping + head('/rcp/ping', [...lines, 'Connection: close']) + ping;
    expect((await client.exchangeBytes(twice)).match(/HTTP\/1\.1 200/g)).toHaveLength(2);
    const { headers } = await client.post('/rcp/ping', ping);
    expect(headers.connection).not.toBe('close');
    expect(Number(/timeout=(\d+)/.exec(String(headers['keep-alive']))?.[1])).toBeGreaterThan(5);
  });

  onHttp('H-10 a body that is no request is 200 with -32700 or -32600', async (client) => {
    const table: [string | Buffer, number][] = [
      ['{', -32700],
      ['1', -32600],
      [Buffer.from([0x22, 0xff, 0x22]), -32700],
      ['null', -32600],
      ['"x"', -32600],
    ];
    for (const [body, code] of table)
      expect(read(await client.post('/rcp', body))).toMatchObject(answered(failure(null, code)));
  });

  onHttp('H-11 an empty body is -32700', async (client) => {
    for (const body of ['', ' ', '\r\n']) {
      expect(read(await client.post('/rcp/ping', body))).toMatchObject(answered(failure(null, -32700)));
    }
  });

  onHttp('H-12 a notification, or an array of nothing else, is 204 without a body', async (client) => {
    for (const frame of [
      notification('info'),
      notification('no/such'),
      batch(notification('ping'), notification('x')),
    ]) {
      const { status, body, headers } = await client.post('/rcp', frame);
      expect([status, body, headers['content-type']]).toEqual([204, '', undefined]);
    }
  });

  onHttp('H-13 a notification at the path of another method is 204 and does nothing', async (client, server) => {
    const before = server.engine.batches.length;
    expect((await client.post('/rcp/ping', notification('embed', { inputs: ['a'] }))).status).toBe(204);
    expect(server.engine.batches.length).toBe(before);
  });

  onHttp('H-19 a failure that prevents any answer is 500, and nothing else is', async (_client, server) => {
    const frames = { ...server.service.frames, handleText: () => Promise.reject(new Error('broken')) };
    const listener = await openHttp({ ...server.service, frames }, server.parts);
    const { status } = await fetch(`${listener.url}/rcp/ping`, { method: 'POST', body: ping });
    expect(status).toBe(500);
    await listener.close({ drainMs: 0 });
  });
});

describe('1.N HTTP: requests', () => {
  const tooLong = failure(null, -32013, { retryable: false });
  const lines = ['Host: 127.0.0.1'];
  const answeredTooLong = (text: string) => {
    expect(text).toMatch(/^HTTP\/1\.1 200 .*\r\n(.*\r\n)*connection: close\r\n/i);
    expect(JSON.parse(bodyOf(text))).toMatchObject(tooLong);
  };

  onHttp('H-14 a body over the limit is read to its end, then -32013, then the connection closes', async (client) => {
    const fits = embedding(1, 'x'.repeat(65_536 - embedding(1, '').length));
    expect(read(await client.post('/rcp/embed', fits))).toMatchObject(answered(ok(1)));
    for (const length of [65_537, 131_072, 4_000_000]) {
      const body = `"${'x'.repeat(length - 2)}"`;
      answeredTooLong(await client.exchangeBytes(head('/rcp/embed', [...lines, `Content-Length: ${length}`]) + body));
      answeredTooLong(
        await client.exchangeBytes(
          head('/rcp/embed', [...lines, 'Transfer-Encoding: chunked']) + chunked(body, 50_000),
        ),
      );
    }
    await answers(client, ping, pong(1));
  });

  onHttp('H-14 a sender that reads only after it has written gets its answer', async (client) => {
    const { socket, ended } = await client.open();
    socket.pause();
    const body = 'x'.repeat(3_000_000);
    await new Promise<void>((resolve) => {
      socket.write(head('/rcp/embed', [...lines, `Content-Length: ${body.length}`]));
      socket.write(body, () => resolve());
    });
    socket.resume();
    answeredTooLong(await ended);
  });

  onHttp('H-15 chunked uploads and Expect: 100-continue are accepted', async (client) => {
    const frame = request(1, 'ping', { nonce: 'é' });
    const byBytes = Buffer.from(frame).toString('latin1');
    for (const size of [1, 7, 1000]) {
      const { socket, ended } = await client.open();
      socket.write(
        Buffer.from(
          head('/rcp/ping', [...lines, 'Connection: close', 'Transfer-Encoding: chunked']) + chunked(byBytes, size),
          'latin1',
        ),
      );
      expect(JSON.parse(bodyOf(await ended))).toMatchObject(pong(1, 'é'));
    }
    const { socket, ended } = await client.open();
    const mayContinue = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
    socket.write(
      head('/rcp/ping', [...lines, 'Connection: close', 'Expect: 100-continue', `Content-Length: ${ping.length}`]),
    );
    expect(await mayContinue).toMatch(/^HTTP\/1\.1 100 Continue/);
    socket.write(ping);
    expect(await ended).toContain('"result":{}');
  });

  onHttp('H-16 no Content-Type is needed, and a packed body is 415', async (client) => {
    for (const type of [null, 'text/plain', 'application/json; charset=utf-8', 'application/x-www-form-urlencoded']) {
      expect(read(await client.post('/rcp/ping', ping, { 'Content-Type': type }))).toMatchObject(answered(pong(1)));
    }
    for (const encoding of ['gzip', 'br', 'GZIP', 'unknown', 'identity, gzip']) {
      expect(read(await client.post('/rcp/ping', ping, { 'Content-Encoding': encoding }))).toEqual({
        status: 415,
        value: null,
      });
    }
    expect(read(await client.post('/rcp/ping', ping, { 'Content-Encoding': 'identity' }))).toMatchObject(
      answered(pong(1)),
    );
  });

  onHttp(
    'H-16 slow heads and slow bodies are ended',
    async (client) => {
      const slowHead = client.exchangeBytes('POST /rcp/ping HTTP/1.1\r\nHost: 127.0.0.1\r\n');
      const slowBody = client.exchangeBytes(head('/rcp/ping', [...lines, 'Content-Length: 1000']) + ping);
      for (const text of await Promise.all([slowHead, slowBody])) expect(text).toMatch(/^HTTP\/1\.1 408 /);
      await answers(client, ping, pong(1));
    },
    { settings: { headersTimeoutMs: 200, bodyTimeoutMs: 200 } },
  );

  onHttp('H-17 a body may be spread over lines', async (client) => {
    expect(read(await client.post('/rcp/ping', JSON.stringify(JSON.parse(ping), null, 2)))).toMatchObject(
      answered(pong(1)),
    );
    expect(read(await client.post('/rcp', `\r\n[\n${ping}\n,\n${ping}\n]\n`))).toMatchObject(
      answered([pong(1), pong(1)]),
    );
  });

  onHttp('H-18 it listens on the loopback address only, unless told otherwise', async (client, server) => {
    expect(settingsSchema.parse({}).host).toBe('127.0.0.1');
    expect((await server.listener()).url).toBe(`http://127.0.0.1:${client.port}`);
  });

  onHttp('H-20 headers that mean nothing here never break a request', async (client) => {
    const all = {
      'RCP-Session': 'x',
      Authorization: 'Bearer x',
      traceparent: 'zz',
      Cookie: 'a=b',
      'X-Unknown': 'é',
      'Accept-Language': 'tlh',
    };
    expect(read(await client.post('/rcp/ping', ping, all))).toMatchObject(answered(pong(1)));
    const odd =
      head('/rcp/ping', ['host: LOCALHOST', 'X-A:', 'x-b:\t1', 'Connection: close', `content-length: ${ping.length}`]) +
      ping;
    expect(await client.exchangeBytes(odd)).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('1.N HTTP: byte for byte what the existing clients send', () => {
  const body = embedding(3, 'a');
  const requests: Record<string, (client: HttpClient) => string> = {
    Node: ({ port }) =>
      head('/rcp/embed', [
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        `Host: 127.0.0.1:${port}`,
        'Connection: close',
      ]),
    Python: ({ port }) =>
      head('/rcp/embed', [
        `Host: 127.0.0.1:${port}`,
        'Accept-Encoding: identity',
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        'Connection: close',
      ]),
    'Rust and C++': () =>
      head('/rcp/embed', [
        'Host: 127.0.0.1',
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        'Connection: close',
      ]),
  };
  for (const [name, headOf] of Object.entries(requests)) {
    onHttp(`H-08 the ${name} client gets an answer it can read`, async (client) => {
      const text = await client.exchangeBytes(headOf(client) + body);
      expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(text).toMatch(/\r\ncontent-length: \d+\r\n/i);
      expect(text).not.toMatch(/transfer-encoding|content-encoding/i);
      expect(JSON.parse(bodyOf(text))).toMatchObject(ok(3, { vectors: [[97, 0, 0, 0]] }));
    });
  }
});
