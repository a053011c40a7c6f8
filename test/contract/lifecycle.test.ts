import { describe, expect } from 'vitest';
import { embedding, exactly, failure, handshake, notification, ok, pong, request } from '../support/harness/frames.ts';
import { answers, answersEach, onBoth, onStdio } from '../support/harness/rows.ts';

const fresh = { isFresh: true };
const initialize = (params?: unknown, id: string | number = 1) => request(id, 'initialize', params);
const session = {
  protocolVersion: 1,
  server: { name: expect.any(String), version: expect.any(String) },
  capabilities: { embed: expect.any(Object) },
  _meta: { conformance: 'L0' },
};

describe('1.E life cycle on stdio', () => {
  onStdio(
    'L-01 info, ping and shutdown work before initialize',
    async (client) => {
      await answersEach(client, [
        [request(0, 'info', {}), ok(0, session)],
        [request(1, 'ping'), pong(1)],
        [request(2, 'shutdown'), ok(2, exactly({}))],
      ]);
    },
    fresh,
  );

  onStdio(
    'L-02 everything else before a successful initialize is -32001, undefined methods too',
    async (client) => {
      for (const method of ['retrieve', 'embed', 'rerank', 'index/add', 'does/not/exist', 'x-acme/foo', '__proto__']) {
        await answers(client, request('k', method, {}), failure('k', -32001, { retryable: true }));
      }
    },
    fresh,
  );

  onStdio(
    'L-03 initialize returns the lower of both versions',
    (client) =>
      answers(
        client,
        initialize({ protocolVersion: 99, client: { name: 'c', version: '1' }, capabilities: {} }),
        ok(1, session),
      ),
    fresh,
  );

  onStdio(
    'L-04 a version below 1 is -32002 and unlocks nothing',
    async (client) => {
      for (const protocolVersion of [0, -1, -99])
        await answers(client, initialize({ protocolVersion }), failure(1, -32002));
      await answers(client, embedding(2, 'a'), failure(2, -32001));
    },
    fresh,
  );

  for (const params of [undefined, {}, { protocolVersion: null }, null]) {
    onStdio(
      `L-05 a version that is absent or null counts as 1 (${params === undefined ? 'no params' : JSON.stringify(params)})`,
      (client) => answers(client, initialize(params), ok(1, session)),
      fresh,
    );
  }

  onStdio(
    'L-06 a version of another type is -32602, a whole number with a fraction of zero is one',
    async (client) => {
      for (const protocolVersion of ['1.0', '1', 1.5, true, [1], {}]) {
        await answers(client, initialize({ protocolVersion }), failure(1, -32602, { field: 'protocolVersion' }));
      }
      await answers(
        client,
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1.0}}',
        ok(1, session),
      );
    },
    fresh,
  );

  onStdio(
    'L-07 a failed handshake may be tried again',
    async (client) => {
      await answers(client, initialize({ protocolVersion: 0 }), failure(1, -32002));
      await answers(client, initialize([]), failure(1, -32602, { field: 'params' }));
      await answers(client, handshake(2), ok(2, session));
    },
    fresh,
  );

  onStdio('L-08 a second initialize is -32600 under its id, and the session goes on', async (client) => {
    await answersEach(client, [
      [handshake('reinit'), failure('reinit', -32600)],
      [initialize({ protocolVersion: 0 }), failure(1, -32600)],
      [initialize([]), failure(1, -32600)],
      [embedding(2, 'a'), ok(2)],
    ]);
  });

  for (const params of [
    { protocolVersion: 1, capabilities: { 'x-acme': 1, streaming: {} } },
    { protocolVersion: 1, capabilities: null },
    { protocolVersion: 1, capabilities: 5, client: 'x', _meta: [] },
  ]) {
    onStdio(
      `L-09 no client capability is demanded, odd ones are ignored (${JSON.stringify(params)})`,
      (client) => answers(client, initialize(params), ok(1, session)),
      fresh,
    );
  }

  onStdio(
    'L-10 info changes nothing and says the same before and after initialize',
    async (client) => {
      const before = (await client.ask(request(1, 'info'))).value.result;
      const opened = (await client.ask(handshake(2))).value.result;
      const after = (await client.ask(request(3, 'info'))).value.result;
      expect(after).toEqual(before);
      expect(opened.capabilities).toEqual(before.capabilities);
    },
    fresh,
  );

  onBoth('L-11 trouble shows in the calls, never in the capabilities', async (client) => {
    const before = (await client.ask(request(1, 'info'))).value.result;
    await answers(client, embedding(2, 'down'), failure(2, -32010, { retryable: true }));
    const after = (await client.ask(request(3, 'info'))).value.result;
    expect(after.capabilities).toEqual(before.capabilities);
    expect(after['x-trivec'].limits).toEqual(before['x-trivec'].limits);
    await answers(client, embedding(4, 'a'), ok(4));
  });

  onBoth('L-12 the level is stated in both results', async (client) => {
    await answers(client, request(1, 'info'), ok(1, { _meta: { conformance: 'L0' } }));
    if (client.transport === 'http') await answers(client, handshake(2), ok(2, { _meta: { conformance: 'L0' } }));
  });

  onStdio('L-13 shutdown is answered last, and nothing read behind it is started', async (client, server) => {
    const slow = client.ask(embedding(1, 'hold'));
    await server.untilBusy(1, 0);
    const last = client.answerTo(request(2, 'shutdown'));
    client.write(`${request(2, 'shutdown', {})}\n${request(3, 'ping')}\n`);
    server.engine.release();
    await client.finished;
    expect((await slow).value).toMatchObject(ok(1));
    expect((await last).value).toMatchObject(ok(2, exactly({})));
    expect(client.lines.map((line) => (JSON.parse(line) as { id: unknown }).id)).toEqual(['handshake', 1, 2]);
  });

  onStdio(
    'L-13 what is left when the time for a shutdown is over is cancelled or unavailable',
    async (client, server) => {
      const slow = client.ask(embedding(1, 'slow:60000'));
      await server.untilBusy(1, 0);
      const started = performance.now();
      await answers(client, request(2, 'shutdown'), ok(2));
      await client.finished;
      expect((await slow).value).toMatchObject({
        id: 1,
        error: { code: expect.toSatisfy((code) => [-32006, -32010].includes(code)) },
      });
      expect(performance.now() - started).toBeLessThan(3500);
    },
  );

  onStdio(
    'L-14 shutdown before initialize is fine',
    async (client) => {
      await answers(client, request(1, 'shutdown'), ok(1, exactly({})));
      await client.finished;
    },
    fresh,
  );

  onStdio('L-15 the end of input is a shutdown without an answer: what was accepted is finished', async (client) => {
    const slow = client.answerTo(embedding(1, 'slow:100'));
    client.write(`${embedding(1, 'slow:100')}\n${notification('ping')}\n`);
    client.end();
    await client.finished;
    expect((await slow).value).toMatchObject(ok(1));
  });
});
