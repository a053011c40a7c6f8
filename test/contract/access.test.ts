import { describe, expect } from 'vitest';
import { embedding, failure, notification, ok, pong, request } from '../support/harness/frames.ts';
import type { HttpClient, HttpHeaders } from '../support/harness/http-client.ts';
import { answers, onBoth, onHttp, onStdio } from '../support/harness/rows.ts';

const ping = request(1, 'ping');
const key = 'k3y-with-é';
const withKey = { settings: { apiKey: [key] } };
const withOrigin = { settings: { corsOrigins: ['https://app.example'] } };
const bearer = (text: string) => ({ Authorization: Buffer.from(`Bearer ${text}`, 'utf8').toString('latin1') });

async function refusedWith(client: HttpClient, frame: string, headers: HttpHeaders = {}): Promise<unknown> {
  const { status, body, headers: received } = await client.post('/rcp', frame, headers);
  expect([status, received['www-authenticate'], received['content-type']]).toEqual([401, 'Bearer', 'application/json']);
  return JSON.parse(body) as unknown;
}

describe('1.O authentication', () => {
  onHttp('A-01 without a configured key nobody is refused', async (client) => {
    for (const headers of [{}, bearer('anything'), { Authorization: 'Basic eDp5' }]) {
      expect((await client.post('/rcp/ping', ping, headers)).status).toBe(200);
    }
  });

  onHttp(
    'A-02 without the right key it is 401 with -32012, not retryable',
    async (client) => {
      const refused = failure(1, -32012, { retryable: false });
      const attempts = [
        {},
        bearer(''),
        bearer('wrong'),
        bearer(`${key}x`),
        bearer(key.slice(0, -1)),
        bearer(key.toUpperCase()),
        { Authorization: key },
        { Authorization: 'Basic a2V5' },
      ];
      for (const headers of attempts) expect(await refusedWith(client, ping, headers)).toMatchObject(refused);
      const { status, body } = await client.post('/rcp/ping', ping, bearer(key));
      expect(status).toBe(200);
      expect(JSON.parse(body)).toMatchObject(pong(1));
    },
    withKey,
  );

  onHttp(
    'A-03 a key in params or _meta has no effect',
    async (client) => {
      for (const params of [
        { token: key },
        { _meta: { token: key, authorization: `Bearer ${key}` } },
        { apiKey: key },
      ]) {
        expect(await refusedWith(client, request(1, 'ping', params))).toMatchObject(failure(1, -32012));
      }
      expect((await client.post(`/rcp/ping?token=${encodeURIComponent(key)}`, ping)).status).toBe(401);
    },
    withKey,
  );

  onHttp(
    'A-04 the refusal is the same for every method, and a notification has no effect',
    async (client, server) => {
      const texts = new Set<string>();
      for (const method of ['embed', 'retrieve', 'no/such', 'initialize', 'shutdown', 'ping']) {
        texts.add(JSON.stringify(await refusedWith(client, request(1, method, { inputs: ['a'] }))));
      }
      expect(texts.size).toBe(1);
      const before = server.engine.batches.length;
      expect([204, 401]).toContain((await client.post('/rcp', notification('embed', { inputs: ['a'] }))).status);
      expect(server.engine.batches.length).toBe(before);
    },
    withKey,
  );

  onStdio(
    'A-04 a key is for HTTP: whoever owns the pipes is let in',
    (client) => answers(client, embedding(1, 'a'), ok(1)),
    withKey,
  );
});

describe('1.O origins and hosts', () => {
  onHttp('A-05 without configured origins every preflight is refused', async (client) => {
    const { status, headers } = await client.exchange('OPTIONS', '/rcp/embed', '', {
      Origin: 'https://app.example',
      'Access-Control-Request-Method': 'POST',
    });
    expect([status, headers['access-control-allow-origin']]).toEqual([403, undefined]);
  });

  onHttp(
    'A-05 a configured origin gets its preflight, another one does not',
    async (client) => {
      const preflight = (origin: string) =>
        client.exchange('OPTIONS', '/rcp/embed', '', { Origin: origin, 'Access-Control-Request-Method': 'POST' });
      const { status, headers } = await preflight('https://app.example');
      expect(status).toBe(204);
      expect(headers).toMatchObject({
        'access-control-allow-origin': 'https://app.example',
        vary: 'Origin',
        'access-control-allow-methods': 'POST, OPTIONS',
        'access-control-allow-headers': 'content-type, authorization, accept, rcp-session',
        'access-control-max-age': expect.stringMatching(/^\d+$/),
      });
      for (const origin of [
        'https://evil.example',
        'http://app.example',
        'https://app.example.evil',
        'null',
        'https://app.example:444',
      ]) {
        const refused = await preflight(origin);
        expect([origin, refused.status, refused.headers['access-control-allow-origin']]).toEqual([
          origin,
          403,
          undefined,
        ]);
      }
    },
    withOrigin,
  );

  onHttp(
    'A-05 an allowed page can read errors and refusals too',
    async (client) => {
      const origin = { Origin: 'https://app.example' };
      for (const frame of [ping, 'x', embedding(1, 'boom')]) {
        const { status, headers } = await client.post('/rcp', frame, origin);
        expect([status, headers['access-control-allow-origin'], headers.vary]).toEqual([
          200,
          'https://app.example',
          'Origin',
        ]);
      }
    },
    withOrigin,
  );

  onHttp(
    'A-05 a preflight needs no key, the call behind it does',
    async (client) => {
      const origin = { Origin: 'https://app.example' };
      expect(
        (await client.exchange('OPTIONS', '/rcp/embed', '', { ...origin, 'Access-Control-Request-Method': 'POST' }))
          .status,
      ).toBe(204);
      const { status, headers } = await client.post('/rcp/embed', embedding(1, 'a'), origin);
      expect([status, headers['access-control-allow-origin']]).toEqual([401, 'https://app.example']);
    },
    { settings: { ...withKey.settings, ...withOrigin.settings } },
  );

  onHttp('A-06 a page that nobody invited is 403 before anything runs', async (client, server) => {
    const before = server.engine.batches.length;
    for (const origin of ['http://evil.example', 'null', 'http://127.0.0.1', 'file://', '']) {
      const { status, body } = await client.post('/rcp/embed', embedding(1, 'a'), {
        Origin: origin,
        'Content-Type': 'text/plain',
      });
      expect([origin, status, body]).toEqual([origin, 403, '']);
    }
    expect(server.engine.batches.length).toBe(before);
  });

  onHttp('A-06 the Host must be this machine', async (client) => {
    const table: [string, number][] = [
      ['127.0.0.1', 200],
      [`127.0.0.1:${client.port}`, 200],
      [`localhost:${client.port}`, 200],
      ['LOCALHOST', 200],
      [`[::1]:${client.port}`, 200],
      ['evil.example', 403],
      ['evil.example:8000', 403],
      ['127.0.0.1.evil.example', 403],
      ['localhost.evil.example', 403],
      ['10.0.0.1', 403],
    ];
    for (const [host, expected] of table) {
      expect([host, (await client.post('/rcp/ping', ping, { Host: host })).status]).toEqual([host, expected]);
    }
  });

  onHttp(
    'A-06 a configured Host is accepted beside this machine',
    async (client) => {
      for (const [host, expected] of [
        ['api.example', 200],
        ['API.example:8000', 200],
        ['localhost', 200],
        ['evil.example', 403],
      ] as const) {
        expect([host, (await client.post('/rcp/ping', ping, { Host: host })).status]).toEqual([host, expected]);
      }
    },
    { settings: { allowedHosts: ['api.example'] } },
  );
});

describe('1.O what requests may do', () => {
  onBoth('A-07 no uri in a request is ever fetched', async (client) => {
    let connections = 0;
    const { createServer } = await import('node:net');
    const target = createServer(() => (connections += 1));
    await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
    const { port } = target.address() as { port: number };
    const uri = `http://127.0.0.1:${port}/x`;
    await answers(
      client,
      request(1, 'embed', { inputs: [{ type: 'image', mimeType: 'image/png', uri }] }),
      failure(1, -32005),
    );
    await answers(client, request(1, 'embed', { inputs: [{ type: 'text', text: 'a', uri }], uri, model: uri }), ok(1));
    await answers(client, request(1, 'rerank', { query: { type: 'text', text: 'a', uri }, passages: [uri] }), ok(1));
    await new Promise((resolve) => target.close(resolve));
    expect(connections).toBe(0);
  });

  onHttp('A-08 one client cannot take more than the queue, and others are told when to come back', async (client) => {
    const calls = Array.from({ length: 20 }, (_, id) => client.ask(embedding(id, `slow:${50 + id}`)));
    const codes = (await Promise.all(calls)).map(({ value }) => value.error?.code ?? 'ok');
    expect(new Set(codes)).toEqual(new Set(['ok', -32011]));
    await answers(client, embedding(99, 'a'), ok(99));
  });

  onHttp(
    'A-09 neither bodies nor keys stand in the log, and identity names the model',
    async (client, server) => {
      const secret = 'correct-horse-battery-staple';
      await client.post('/rcp/embed', embedding(1, secret), bearer(key));
      await client.post('/rcp/embed', embedding(1, secret, 'boom'), bearer(key));
      await client.post('/rcp/embed', embedding(1, secret));
      await client.post('/rcp/embed', `{"${secret}`, bearer(key));
      expect(server.logText()).not.toMatch(new RegExp(`${secret}|${key}`));
      const { body } = await client.post('/rcp/info', request(1, 'info'), bearer(key));
      expect(JSON.parse(body)).toMatchObject(ok(1, { capabilities: { embed: { identity: 'fix@1' } } }));
    },
    withKey,
  );
});
