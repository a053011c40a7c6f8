import { describe, expect } from 'vitest';
import {
  batch,
  embedding,
  exactly,
  failure,
  notification,
  ok,
  pong,
  request,
  vectors,
} from '../support/harness/frames.ts';
import { answers, answersEach, onBoth } from '../support/harness/rows.ts';

const ping = request(1, 'ping');
const invalid = failure(null, -32600);
const pingWithId = (rawId: string) => `{"jsonrpc":"2.0","id":${rawId},"method":"ping"}`;

describe('1.B envelope and ids', () => {
  onBoth('E-01 every frame sent is one that the schema knows', async (client) => {
    // Each received text is checked as it comes; this row makes one of every kind.
    await client.tell(notification('ping'));
    for (const frame of ['x', '{}', '[1]', ping, request(1, 'info'), request(1, 'retrieve'), request(1, 'no/such')]) {
      await client.ask(frame);
    }
    await client.ask(batch(embedding(1, 'a'), embedding(2, 1), request(3, 'rerank', { query: 'a', passages: ['a'] })));
    expect(client.problems()).toEqual([]);
  });

  onBoth('E-02 jsonrpc with another value than "2.0" is -32600 under its id', async (client) => {
    for (const version of ['"1.0"', '2.0', '"2"', 'true', 'null', '[]']) {
      await answers(client, `{"jsonrpc":${version},"id":1,"method":"ping"}`, failure(1, -32600));
    }
  });

  onBoth('E-03 a request without jsonrpc is answered', async (client) => {
    await answers(client, '{"id":1,"method":"ping"}', pong(1));
  });

  onBoth('E-04 without jsonrpc and id it is a notification', async (client) => {
    await client.tell('{"method":"embed","params":{"inputs":["a"]}}');
  });

  onBoth('E-05 a scalar is an invalid request', async (client) => {
    for (const text of ['1', '"x"', 'null', 'true', '-0.5e3']) await answers(client, text, invalid);
  });

  onBoth('E-06 an object without a method and an id is an invalid request', async (client) => {
    await answersEach(client, [
      ['{}', invalid],
      ['{"jsonrpc":"2.0","foo":1}', invalid],
    ]);
  });

  onBoth('E-07 outside a batch the same defect is answered under its id', async (client) => {
    await answersEach(client, [
      ['{"jsonrpc":"2.0","id":5,"method":1}', failure(5, -32600)],
      ['{"jsonrpc":"2.0","id":5}', failure(5, -32600)],
      ['{"jsonrpc":"2.0","id":"k","method":null}', failure('k', -32600)],
    ]);
  });

  onBoth('E-08 the id comes back with its type and value', async (client) => {
    for (const id of [1, '1', '', 'é', 0, -3]) await answers(client, request(id, 'ping'), pong(id));
  });

  onBoth('E-09 a fractional id is an id', async (client) => {
    await answers(client, pingWithId('1.5'), pong(1.5));
  });

  onBoth('E-10 an id beyond the doubles comes back character by character', async (client) => {
    const ids = [
      '9007199254740993',
      '12345678901234567890123',
      '1e400',
      '-1e400',
      '1.0',
      '-0',
      '1E2',
      '1e-400',
      '0.10',
    ];
    for (const rawId of ids) {
      const { text } = await client.ask(pingWithId(rawId));
      expect(text).toBe(`{"jsonrpc":"2.0","id":${rawId},"result":{}}`);
    }
    const { text } = await client.ask(
      '{ "params" : {"id":1,"x":{"id":2}}, "method":"ping" , "id" :\t18446744073709551615 }',
    );
    expect(text).toContain('"id":18446744073709551615,');
  });

  onBoth('E-11 an id that is null is no id: -32600', async (client) => {
    await answers(client, pingWithId('null'), invalid);
  });

  onBoth('E-12 an id of another type is -32600 with id null and is never copied', async (client) => {
    for (const rawId of ['{}', '[]', 'true', 'false', '{"id":1}', `${'['.repeat(20_000)}${']'.repeat(20_000)}`]) {
      await answers(client, pingWithId(rawId), invalid);
    }
  });

  onBoth('E-13 a whole id has no fraction in the answer', async (client) => {
    expect((await client.ask(pingWithId('7'))).text).toContain('"id":7,');
  });

  onBoth('E-14 the same id twice in flight is answered twice', async (client) => {
    const slow = client.ask(embedding(1, 'slow:150'));
    const quick = client.ask(ping);
    const results = await Promise.all([slow, quick]);
    expect(results.map(({ value }) => Object.keys(value.result).includes('vectors')).sort()).toEqual([false, true]);
  });

  onBoth('E-15 1 and "1" are different ids, also for a cancel', async (client, server) => {
    const slow = client.ask(embedding(1, 'hold'));
    await server.untilBusy(1, 0);
    await client.tell(notification('notifications/cancel', { id: '1' }));
    server.engine.release();
    expect((await slow).value).toMatchObject(vectors(1, [104, 111, 108, 100]));
  });

  onBoth('E-16 ping overtakes inference', async (client, server) => {
    const order: string[] = [];
    const slow = client.ask(embedding(1, 'hold')).then(() => order.push('embed'));
    await server.untilBusy(1, 0);
    await client.ask(request(2, 'ping')).then(() => order.push('ping'));
    server.engine.release();
    await slow;
    expect(order).toEqual(['ping', 'embed']);
  });

  onBoth(
    'E-17 each of 200 mixed requests is answered exactly once',
    async (client) => {
      const kinds = [
        (id: number) => request(id, 'ping'),
        (id: number) => embedding(id, `text ${id}`),
        (id: number) => embedding(id, 1),
        (id: number) => request(id, 'rerank', { query: 'a', passages: ['a', 'b'] }),
        (id: number) => request(id, 'no/such'),
        (id: number) => request(id, 'embed/multi', { inputs: ['ab'] }),
      ];
      const asked = Array.from({ length: 200 }, (_, id) => client.ask(kinds[id % kinds.length]?.(id) ?? ''));
      const ids = (await Promise.all(asked)).map(({ value }) => value.id);
      expect(ids).toEqual(Array.from({ length: 200 }, (_, id) => id));
    },
    { settings: { maxQueuedItems: 1000 } },
  );

  onBoth('E-18 params that are null are no params', async (client) => {
    await answers(client, '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', pong(1));
  });

  onBoth('E-19 params of another type are -32602, field params', async (client) => {
    for (const method of ['embed', 'embed/sparse', 'embed/multi', 'rerank', 'ping', 'info']) {
      for (const params of [[], 'x', 1, true, [1], '']) {
        await answers(client, request(1, method, params), failure(1, -32602, { field: 'params' }));
      }
    }
  });

  onBoth('E-20 unknown members are ignored at every level', async (client) => {
    const frame =
      '{"jsonrpc":"2.0","id":1,"method":"embed","zz":1,"params":{"inputs":["a"],"zz":{"a":[1]},"x-acme":1,"_meta":{"traceId":"t","q":null}}}';
    await answers(client, frame, vectors(1, [97, 0, 0, 0]));
  });

  onBoth('E-21 a frame shaped like a response is -32600 with id null', async (client) => {
    await answersEach(client, [
      ['{"jsonrpc":"2.0","id":1,"result":{}}', invalid],
      ['{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', invalid],
    ]);
  });

  onBoth('E-22 of repeated members the last one counts, in value and in raw text', async (client) => {
    expect((await client.ask('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}')).text).toContain('"id":2,');
    expect((await client.ask('{"id":1,"method":"info","method":"ping","\\u0069d":1e400}')).text).toContain(
      '"id":1e400,',
    );
  });

  onBoth('E-23 a value that is not a number fails the call with its field, null is never sent', async (client) => {
    await answersEach(client, [
      [embedding(1, 'nan'), failure(1, -32603, { field: 'inputs[0]' })],
      [embedding(1, 'a', 'nan'), failure(1, -32603, { field: 'inputs[1]' })],
      [request(1, 'embed/sparse', { texts: ['nan'] }), failure(1, -32603, { field: 'texts[0]' })],
      [request(1, 'embed/multi', { inputs: ['nan'] }), failure(1, -32603, { field: 'inputs[0]' })],
      [embedding(2, 'a'), vectors(2, [97, 0, 0, 0])],
    ]);
  });

  onBoth('E-24 whole numbers are written whole', async (client) => {
    const { text: reranked } = await client.ask(request(1, 'rerank', { query: 'a', passages: ['b', 'a'] }));
    expect(reranked).toContain('"order":[1,0]');
    const { text: sparse } = await client.ask(request(1, 'embed/sparse', { inputs: ['ab'] }));
    expect(sparse).toContain('"indices":[97,98]');
    expect((await client.ask(embedding(1, 'a'))).text).toContain('"dimension":4');
  });

  onBoth('E-25 no inherited name is a method', async (client) => {
    for (const method of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'prototype', 'get']) {
      await answers(client, request(1, method), failure(1, -32004));
    }
    await answers(client, request(1, 'info'), ok(1));
  });

  onBoth('E-26 method names are taken letter by letter', async (client) => {
    for (const method of ['PING', ' ping', 'ping ', '', 'Embed', 'embed\u0000', 'rcp/ping']) {
      await answers(client, request(1, method), failure(1, -32004));
    }
    await answers(client, request(1, 'embed', { inputs: [], kind: 'QUERY' }), failure(1, -32602, { field: 'kind' }));
    await answers(client, request(1, 'ping', { Nonce: 1 }), ok(1, exactly({})));
  });
});
