import { describe, expect } from 'vitest';
import {
  batch,
  embedding,
  failure,
  handshake,
  notification,
  ok,
  pong,
  request,
  vectors,
} from '../support/harness/frames.ts';
import { answers, answersEach, onBoth } from '../support/harness/rows.ts';

const invalid = failure(null, -32600);
const ping = (id: number | string, nonce?: unknown) => request(id, 'ping', nonce === undefined ? undefined : { nonce });
const cancel = (id: unknown) => notification('notifications/cancel', { id });
const many = (count: number, frame: (index: number) => string) =>
  batch(...Array.from({ length: count }, (_, index) => frame(index)));

describe('1.D batching: what an array is answered with', () => {
  onBoth('BA-01 an array of one reply for each request', async (client) => {
    const frame = batch(ping(1, 1), cancel(9), request(2, 'info', {}));
    await answers(client, frame, [pong(1, 1), ok(2, { protocolVersion: 1 })]);
  });

  onBoth('BA-02 an empty array is answered with one object', async (client) => {
    for (const text of ['[]', ' [ ] ', '[\t]']) await answers(client, text, invalid);
  });

  onBoth('BA-03 a batch of one is answered with an array of one', async (client) => {
    await answers(client, batch(ping(1)), [pong(1)]);
  });

  onBoth('BA-04 only notifications give no output', async (client) => {
    await client.tell(batch(cancel(1), notification('notifications/x')));
  });

  onBoth('BA-05 requests without an id have no entry either', async (client) => {
    await answers(client, batch(notification('embed', { inputs: ['a'] }), ping(1)), [pong(1)]);
  });

  onBoth('BA-06 a member that is no object is invalid', async (client) => {
    for (const member of ['1', 'null', '"x"', 'true', '1.5']) await answers(client, `[${member}]`, [invalid]);
    await answers(client, '[null,null]', [invalid, invalid]);
  });

  onBoth('BA-07 an object without a method is invalid', async (client) => {
    for (const member of ['{}', '{"jsonrpc":"2.0","foo":"boo"}']) await answers(client, `[${member}]`, [invalid]);
  });

  onBoth('BA-08 each bad member has its entry', async (client) => {
    await answers(client, '[1,2,3]', [invalid, invalid, invalid]);
  });

  onBoth('BA-09 bad members do not stop good ones', async (client) => {
    await answers(client, batch('1', 'null', '{}', '"x"', ping(9)), [invalid, invalid, invalid, invalid, pong(9)]);
  });

  onBoth('BA-10 a nested array is one malformed member, and nothing inside it runs', async (client, server) => {
    await answersEach(client, [
      ['[[]]', [invalid]],
      [batch(batch(ping(1))), [invalid]],
      [batch(batch(ping(1)), ping(2)), [invalid, pong(2)]],
    ]);
    const before = server.engine.batches.length;
    await answers(client, batch(batch(embedding(1, 'a'))), [invalid]);
    expect(server.engine.batches.length).toBe(before);
  });

  onBoth('BA-11 a malformed member is answered with id null, even where it has one', async (client) => {
    for (const member of [
      '{"jsonrpc":"2.0","id":5}',
      '{"jsonrpc":"2.0","id":5,"method":1}',
      '{"jsonrpc":"2.0","id":5,"method":null}',
    ]) {
      await answers(client, `[${member}]`, [invalid]);
    }
  });

  onBoth('BA-12 ids of other types are invalid', async (client) => {
    const members = ['null', '{}', '[1]', 'true'].map((rawId) => `{"jsonrpc":"2.0","id":${rawId},"method":"ping"}`);
    await answers(client, batch(...members), [invalid, invalid, invalid, invalid]);
  });

  onBoth('BA-13 another jsonrpc is invalid', async (client) => {
    await answers(client, '[{"jsonrpc":"1.0","id":5,"method":"ping"}]', [invalid]);
    await answers(client, '[{"jsonrpc":2.0,"id":5,"method":"ping"}]', [invalid]);
  });

  onBoth('BA-14 members without jsonrpc run', async (client) => {
    const member = (id: number, text: string) => `{"id":${id},"method":"embed","params":{"inputs":["${text}"]}}`;
    await answers(client, batch(member(1, 'a'), member(2, 'b')), [
      vectors(1, [97, 0, 0, 0]),
      vectors(2, [98, 0, 0, 0]),
    ]);
  });

  onBoth('BA-15 the error of one member leaves the others alone', async (client) => {
    const good = vectors(2, [97, 0, 0, 0]);
    await answers(client, batch(embedding(1, 1), embedding(2, 'a')), [
      failure(1, -32602, { field: 'inputs[0]' }),
      good,
    ]);
    await answers(client, batch(embedding(0, 'b'), embedding(1, 'boom'), embedding(2, 'a')), [
      ok(0),
      failure(1, -32603),
      good,
    ]);
  });

  onBoth('BA-16 methods are gated as for single calls', async (client) => {
    const frame = batch(request(1, 'no/such'), request(2, 'retrieve', { query: 'q', k: 1 }), ping(3));
    await answers(client, frame, [failure(1, -32004), failure(2, -32003), pong(3)]);
  });

  onBoth('BA-22 a sibling that is cancelled still has its one entry', async (client) => {
    const started = performance.now();
    await answers(client, batch(embedding(5, 'hold'), cancel(5)), [failure(5, -32006)]);
    expect(performance.now() - started).toBeLessThan(2000);
  });

  onBoth('BA-23 a cancel before its target is a no-op', async (client) => {
    await answers(client, batch(cancel(5), ping(5)), [pong(5)]);
    await answers(client, batch(cancel(5), embedding(5, 'a')), [ok(5)]);
  });

  onBoth('BA-26 members with the same id have an entry each', async (client) => {
    await answers(client, batch(ping(1, 'a'), ping(1, 'b')), [pong(1, 'a'), pong(1, 'b')]);
  });

  onBoth('BA-27 ids of members are raw text', async (client) => {
    const { text } = await client.ask(
      '[{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"},{"jsonrpc":"2.0","id":1e400,"method":"ping"}]',
    );
    expect(text).toBe('[{"jsonrpc":"2.0","id":9007199254740993,"result":{}},{"jsonrpc":"2.0","id":1e400,"result":{}}]');
  });

  onBoth('BA-28 over the cap it is one object that names the cap, and nothing runs', async (client, server) => {
    const tooMany = failure(null, -32602, { limit: 8, received: 9, retryable: false });
    await answers(client, many(9, ping), tooMany);
    const before = server.engine.batches.length;
    await answers(
      client,
      many(9, (id) => embedding(id, 'a')),
      tooMany,
    );
    await answers(
      client,
      many(9, () => '1'),
      tooMany,
    );
    expect(server.engine.batches.length).toBe(before);
  });

  onBoth('BA-29 at the cap it works', async (client) => {
    await answers(
      client,
      many(8, ping),
      Array.from({ length: 8 }, (_, id) => pong(id)),
    );
  });

  onBoth(
    'BA-30 over the cap with nothing but notifications it is silence, and nothing is done',
    async (client, server) => {
      if (client.transport === 'http') {
        await client.tell(many(9, cancel));
        return;
      }
      const slow = client.ask(embedding(3, 'hold'));
      await server.untilBusy(1, 0);
      await client.tell(many(9, cancel));
      server.engine.release();
      expect((await slow).value).toMatchObject(ok(3));
    },
  );

  onBoth('BA-32 broken JSON inside an array is one parse error', async (client) => {
    await answers(client, '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc"', failure(null, -32700));
    await answers(client, `[${ping(1)},]`, failure(null, -32700));
  });

  onBoth(
    'BA-39 a batch shares the queue with all others: surplus members are -32011, the others run',
    async (client) => {
      const { value } = await client.ask(many(8, (id) => embedding(id, 'slow:50')));
      const good = value.filter(({ result }: { result?: object }) => result !== undefined);
      const refused = value.filter(({ error }: { error?: object }) => error !== undefined);
      expect(value.map(({ id }: { id: number }) => id)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect(good.length).toBeGreaterThanOrEqual(3);
      expect(good.length).toBeLessThan(8);
      for (const { id, ...rest } of refused) {
        expect({ id, ...rest }).toMatchObject(
          failure(id, -32011, { retryable: true, retryAfterMs: expect.toSatisfy(Number.isInteger) }),
        );
      }
    },
  );

  onBoth('BA-40 a member shaped like a response is invalid', async (client) => {
    await answers(client, '[{"jsonrpc":"2.0","id":1,"result":{}}]', [invalid]);
  });

  onBoth('BA-41 a good envelope with bad params is -32602 under its id', async (client) => {
    await answers(client, batch(request(1, 'embed', [])), [failure(1, -32602, { field: 'params' })]);
  });

  onBoth('BA-43 a cancel with an id as a member is -32600 under its id', async (client) => {
    await answers(client, batch(request(7, 'notifications/cancel', { id: 5 }), ping(5)), [failure(7, -32600), pong(5)]);
  });

  onBoth('BA-44 replies keep the order of the members, however long each takes', async (client) => {
    const frame = batch(embedding(3, 'slow:60'), ping(2), embedding(1, 'a'), request(0, 'no/such'));
    await answers(client, frame, [ok(3), pong(2), ok(1), failure(0, -32004)]);
  });

  onBoth('BA-01 cancels take effect at their place among the members', async (client) => {
    const { value } = await client.ask(
      batch(embedding(1, 'slow:500'), embedding(2, 'a'), cancel(1), embedding(3, 'b')),
    );
    expect(value).toMatchObject([failure(1, -32006), ok(2), ok(3)]);
  });

  onBoth('BA-16 a handshake in a batch is answered like a single one', async (client) => {
    const expected = client.transport === 'stdio' ? failure(1, -32600) : ok(1, { protocolVersion: 1 });
    await answers(client, batch(handshake(1), ping(2)), [expected, pong(2)]);
  });
});
