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
import { answers, onBoth, onHttp, onStdio } from '../support/harness/rows.ts';

const cancel = (params?: unknown) => notification('notifications/cancel', params);

describe('1.C notifications', () => {
  onBoth('N-01 a frame without an id is never answered, whatever it names', async (client) => {
    for (const method of [
      'ping',
      'info',
      'embed',
      'retrieve',
      'does/not/exist',
      'notifications/xyz',
      'rerank',
      '__proto__',
    ]) {
      await client.tell(notification(method));
      await client.tell(notification(method, [1]));
    }
  });

  onStdio(
    'N-02 an initialize without an id changes nothing',
    async (client) => {
      client.write(`${notification('initialize', { protocolVersion: 1 })}\n`);
      await answers(client, embedding(1, 'a'), failure(1, -32001));
      expect(client.lines).toHaveLength(1);
    },
    { isFresh: true },
  );

  onStdio('N-03 a shutdown without an id is obeyed in silence', async (client) => {
    client.write(`${notification('shutdown')}\n${request(1, 'ping')}\n`);
    await client.finished;
    expect(client.lines).toHaveLength(1);
  });

  onHttp('N-03 over HTTP a shutdown without an id has no effect', async (client) => {
    await client.tell(notification('shutdown'));
    await answers(client, embedding(1, 'a'), ok(1));
  });

  onBoth('N-04 unknown notifications are ignored, odd params too', async (client) => {
    for (const params of [[1], 'x', 5, null, { a: 1 }]) await client.tell(notification('notifications/zzz', params));
  });

  onBoth('N-05 a cancel of nothing is a no-op', async (client) => {
    await answers(client, request(4, 'ping'), pong(4));
    for (const params of [
      undefined,
      null,
      {},
      { id: null },
      { id: {} },
      { id: [1] },
      { id: true },
      { id: 4 },
      { id: 'x' },
      [4],
    ]) {
      await client.tell(cancel(params));
    }
  });

  onBoth('N-06 a cancel with an id is -32600 and cancels nothing', async (client, server) => {
    const slow = client.ask(embedding(1, 'hold'));
    await server.untilBusy(1, 0);
    await answers(client, request(7, 'notifications/cancel', { id: 1 }), failure(7, -32600));
    server.engine.release();
    expect((await slow).value).toMatchObject(ok(1));
  });

  onStdio(
    'N-06 a cancel with an id is -32600 before initialize too',
    (client) => answers(client, request(7, 'notifications/cancel', { id: 1 }), failure(7, -32600)),
    { isFresh: true },
  );

  onBoth('N-07 any other notification with an id is an undefined request', async (client) => {
    await answers(client, request(1, 'notifications/progress', {}), failure(1, -32004));
    await answers(client, request(1, 'notifications/log', {}), failure(1, -32004));
  });

  onStdio(
    'N-07 before initialize it is -32001',
    (client) => answers(client, request(1, 'notifications/progress', {}), failure(1, -32001)),
    { isFresh: true },
  );

  onBoth('N-08 a call without an id costs no inference', async (client, server) => {
    const frame = notification('embed', { inputs: ['slow:60000', 'b'] });
    const before = server.engine.batches.length;
    for (let sent = 0; sent < 200; sent++) await client.tell(frame);
    await answers(client, request(1, 'ping'), pong(1));
    const steered = server.engine.batches.slice(before).filter(({ items }) => items.some(({ ids }) => ids.length > 8));
    expect(steered).toEqual([]);
  });

  onHttp('N-09 a notification is 204 without a body', async (client) => {
    const { status, body, headers } = await client.post('/rcp/info', notification('info'));
    expect([status, body, headers['content-length'] ?? '0', headers['content-type']]).toEqual([
      204,
      '',
      '0',
      undefined,
    ]);
  });

  onBoth('N-10 without an id and a usable method it is malformed, not a notification', async (client) => {
    for (const frame of ['{"jsonrpc":"2.0","method":1}', '{"method":null}', '{"params":{}}']) {
      await answers(client, frame, failure(null, -32600));
    }
  });

  onBoth('N-11 without an opt-in the server sends no notification', async (client) => {
    // The record of each client blames any that comes; this row makes the calls that could.
    await answers(client, embedding(1, 'slow:20', 'slow:20', 'a'), ok(1));
    await client.ask(batch(embedding(1, 'a'), embedding(2, 'boom')));
    await answers(
      client,
      request(3, 'embed', { inputs: ['a', 'b'], _meta: {} }),
      vectors(3, [97, 0, 0, 0], [98, 0, 0, 0]),
    );
    if (client.transport === 'stdio') await answers(client, handshake(4), failure(4, -32600));
    expect(client.problems()).toEqual([]);
  });
});
