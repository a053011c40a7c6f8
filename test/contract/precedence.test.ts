import { describe, expect } from 'vitest';
import { batch, embedding, failure, notification, ok, pong, request } from '../support/harness/frames.ts';
import { answers, answersEach, onBoth, onHttp, onStdio } from '../support/harness/rows.ts';

const notOffered = [
  'retrieve',
  'query/transform',
  'graph',
  'index/add',
  'index/delete',
  'catalog/list',
  'feedback',
  'memory/build',
  'memory/recall',
];
const withKey = { settings: { apiKey: ['secret'] } };

describe('1.G error precedence', () => {
  onBoth('G-01 a defined method that is not offered is -32003, whatever its params', async (client) => {
    for (const method of notOffered) {
      for (const params of [{}, [], null, 5]) await answers(client, request(1, method, params), failure(1, -32003));
    }
  });

  onBoth('G-02 anything else is -32004, whatever its params', async (client) => {
    const methods = [
      'does/not/exist',
      'embed/',
      'embed/foo',
      '/embed',
      'rcp.discover',
      'notifications/xyz',
      'x-acme/foo',
      'x-trivec/embed',
    ];
    for (const method of methods) {
      for (const params of [{}, []]) await answers(client, request(1, method, params), failure(1, -32004));
    }
  });

  onStdio(
    'G-03 before initialize -32001 beats both',
    async (client) => {
      for (const method of [...notOffered, 'does/not/exist', 'embed']) {
        await answers(client, request(1, method, []), failure(1, -32001));
      }
    },
    { isFresh: true },
  );

  onBoth('G-04 -32005 is for values that are not advertised, -32602 for what no server accepts', async (client) => {
    const rerank = (options: object) => request(1, 'rerank', { query: 'q', passages: ['a'], ...options });
    await answersEach(client, [
      [rerank({ method: 'llm' }), failure(1, -32005, { option: 'llm', field: 'method' })],
      [rerank({ method: 5 }), failure(1, -32602, { field: 'method' })],
    ]);
  });

  onBoth('G-04 the order of the table: wrong type, unsupported option, limit, deadline', async (client) => {
    const call = (params: object) => request(1, 'embed', params);
    const tooMany = ['a', 'a', 'a', 'a', 'a'];
    const spent = { _meta: { deadlineMs: 0 } };
    await answersEach(client, [
      [call({ inputs: 5, encoding: 'x', ...spent }), failure(1, -32602, { field: 'inputs' })],
      [call({ inputs: tooMany, encoding: 'x', ...spent }), failure(1, -32005, { field: 'encoding' })],
      [call({ inputs: tooMany, ...spent }), failure(1, -32602, { field: 'inputs', limit: 4 })],
      [call({ inputs: ['a'], ...spent }), failure(1, -32014)],
    ]);
  });

  onBoth('G-04 the order of the table: text, envelope, cancel with an id, method, params', async (client) => {
    await answersEach(client, [
      ['{"jsonrpc":"1.0","id":1,"method":"no/such","params":5', failure(null, -32700)],
      ['{"jsonrpc":"1.0","id":1,"method":"no/such","params":5}', failure(1, -32600)],
      [request(1, 'notifications/cancel', 5), failure(1, -32600)],
      [request(1, 'no/such', 5), failure(1, -32004)],
      [request(1, 'embed', 5), failure(1, -32602)],
    ]);
  });

  onHttp(
    'G-05 without the key every method is -32012, defined or not',
    async (client) => {
      for (const method of ['embed', 'ping', 'retrieve', 'no/such', 'initialize']) {
        const { status, body } = await client.post('/rcp', request(1, method, {}));
        expect(status).toBe(401);
        expect(JSON.parse(body)).toMatchObject(failure(1, -32012, { retryable: false }));
      }
      const { body } = await client.post('/rcp/ping', request(1, 'info'));
      expect(JSON.parse(body)).toMatchObject(failure(1, -32012));
      expect(JSON.parse((await client.post('/rcp', 'no json')).body)).toMatchObject(failure(null, -32012));
    },
    withKey,
  );

  onHttp(
    'G-05 what no call is at all is refused before the key is asked for',
    async (client) => {
      const statuses = [
        await client.exchange('POST', '/nope/ping', request(1, 'ping')),
        await client.exchange('GET', '/rcp/info'),
        await client.post('/rcp/ping', request(1, 'ping'), { Origin: 'http://evil.example' }),
      ].map(({ status }) => status);
      expect(statuses).toEqual([404, 405, 403]);
      const long = await client.post('/rcp/ping', 'x'.repeat(70_000));
      expect(JSON.parse(long.body)).toMatchObject(failure(null, -32013));
    },
    withKey,
  );

  onBoth('G-06 only the codes of RCP and JSON-RPC are ever answered', async (client) => {
    // Each received code is checked as it comes; this row provokes one of every kind that needs no time.
    const frames = [
      'x',
      '1',
      request(1, 'no/such'),
      request(1, 'retrieve'),
      request(1, 'embed', {}),
      embedding(1, 'boom'),
      embedding(1, 'nan'),
      request(1, 'embed', { inputs: [], encoding: 'x' }),
      request(1, 'embed', { inputs: ['a'], _meta: { deadlineMs: 0 } }),
      request(1, 'initialize', { protocolVersion: 0 }),
    ];
    const codes = new Set<number>();
    for (const frame of frames) codes.add((await client.ask(frame)).value.error.code);
    expect([...codes].every((code) => code >= -32700 && code <= -32001)).toBe(true);
    expect(codes.has(-32601)).toBe(false);
    await client.ask(batch(...frames.slice(2)));
    expect(client.problems()).toEqual([]);
  });

  onHttp('G-06 a path that names another method wins over the method itself', async (client) => {
    const { body } = await client.post('/rcp/ping', request(1, 'no/such'));
    expect(JSON.parse(body)).toMatchObject(failure(1, -32600));
    expect((await client.post('/rcp/ping', notification('no/such'))).status).toBe(204);
    await answers(client, request(2, 'ping'), pong(2));
    await answers(client, embedding(3, 'a'), ok(3));
  });
});
