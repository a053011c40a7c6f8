import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { batch, embedding, failure, notification, ok, pong, request } from '../support/harness/frames.ts';
import { fillQueue } from '../support/harness/full-queue.ts';
import { answers, answersEach, onBoth, onHttp, onStdio } from '../support/harness/rows.ts';

const cancel = (id: unknown, reason?: string) => notification('notifications/cancel', { id, reason });
const within = async (maxMs: number, work: () => Promise<unknown>) => {
  const started = performance.now();
  await work();
  expect(performance.now() - started).toBeLessThan(maxMs);
};
const call = (id: number, inputs: string[], meta: object) => request(id, 'embed', { inputs, _meta: meta });

describe('1.L limits and overload', () => {
  onBoth('LM-01 over an advertised limit it is -32602 with limit and received, at once', async (client) => {
    const info = (await client.ask(request(1, 'info'))).value.result;
    const { embed, rerank } = info.capabilities;
    const { batchMembers } = info['x-trivec'].limits;
    const texts = (count: number) => Array<string>(count + 1).fill('a');
    const data = (limit: number) => ({ limit, received: limit + 1, retryable: false });
    await answersEach(client, [
      [
        request(1, 'embed', { inputs: texts(embed.batchLimit) }),
        failure(1, -32602, { field: 'inputs', ...data(embed.batchLimit) }),
      ],
      [
        request(1, 'embed/sparse', { texts: texts(embed.batchLimit) }),
        failure(1, -32602, { field: 'texts', ...data(embed.batchLimit) }),
      ],
      [
        request(1, 'embed/multi', { inputs: texts(embed.batchLimit) }),
        failure(1, -32602, { field: 'inputs', ...data(embed.batchLimit) }),
      ],
      [
        request(1, 'rerank', { query: 'a', passages: texts(rerank.maxCandidates) }),
        failure(1, -32602, { field: 'passages', ...data(rerank.maxCandidates) }),
      ],
      [batch(...texts(batchMembers).map((_, id) => request(id, 'ping'))), failure(null, -32602, data(batchMembers))],
    ]);
  });

  onBoth('LM-02 over a limit of bytes it is -32013, not retryable', async (client) => {
    const fits = embedding(1, 'x'.repeat(65_536 - embedding(1, '').length));
    expect(fits.length).toBe(65_536);
    await answers(client, fits, ok(1));
    const { value } = await client.ask(embedding(2, 'x'.repeat(70_000)));
    expect([2, null]).toContain(value.id);
    expect(value).toMatchObject(failure(value.id, -32013, { retryable: false }));
    await answers(client, request(3, 'ping'), pong(3));
  });

  onBoth('LM-03 over a full queue it is -32011 with retryAfterMs, while ping is never shed', async (client, server) => {
    const accepted = await fillQueue(client, server);
    const advice = { retryable: true, retryAfterMs: expect.toSatisfy((ms) => Number.isInteger(ms) && ms >= 0) };
    await answers(client, embedding(14, 'a'), failure(14, -32011, advice));
    await answers(client, request(15, 'ping'), pong(15));
    await answers(client, request(16, 'info'), ok(16));
    server.engine.release();
    expect((await Promise.all(accepted)).map(({ value }) => value)).toMatchObject([1, 2, 3, 4].map((id) => ok(id)));
    await answers(client, embedding(17, 'a'), ok(17));
  });

  onHttp('LM-04 overload is 200 with -32011 and Retry-After', async (client, server) => {
    const accepted = await fillQueue(client, server);
    const { status, headers, body } = await client.post('/rcp/embed', embedding(14, 'a'));
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject(failure(14, -32011));
    expect(headers['retry-after']).toMatch(/^\d+$/);
    server.engine.release();
    await Promise.all(accepted);
  });
});

describe('1.L deadlines', () => {
  onBoth('DL-01 at the deadline of the server it is -32014', async (client) => {
    const started = performance.now();
    await answers(client, embedding(1, 'slow:7000'), failure(1, -32014, { retryable: true }));
    const tookMs = performance.now() - started;
    expect(tookMs).toBeGreaterThan(4900);
    expect(tookMs).toBeLessThan(6500);
  });

  onBoth('DL-02 deadlineMs lowers it, zero and less are over at once, more is capped', async (client, server) => {
    const before = server.engine.batches.length;
    for (const deadlineMs of [0, -1, -1e9]) {
      await within(2000, () =>
        answers(client, call(1, ['a'], { deadlineMs }), failure(1, -32014, { retryable: true })),
      );
    }
    await answers(client, call(1, [], { deadlineMs: 0 }), failure(1, -32014));
    expect(server.engine.batches.length).toBe(before);
    await answers(client, call(2, ['a'], { deadlineMs: 1e12 }), ok(2));
    await within(2000, () => answers(client, call(3, ['hold'], { deadlineMs: 100 }), failure(3, -32014)));
  });

  onBoth('DL-02 it holds for every method and in the queue too', async (client, server) => {
    const running = client.ask(embedding(1, 'hold'));
    await server.untilBusy(1, 0);
    const spent = { _meta: { deadlineMs: 50 } };
    await answersEach(client, [
      [request(2, 'embed/sparse', { inputs: ['a'], ...spent }), failure(2, -32014)],
      [request(3, 'embed/multi', { inputs: ['a'], ...spent }), failure(3, -32014)],
      [request(4, 'rerank', { query: 'a', passages: ['a'], ...spent }), failure(4, -32014)],
    ]);
    server.engine.release();
    expect((await running).value).toMatchObject(ok(1));
  });

  onBoth('DL-03 a deadline that is no number is ignored', async (client) => {
    for (const deadlineMs of ['5', '0', null, {}, [], true, false])
      await answers(client, call(1, ['a'], { deadlineMs }), ok(1));
  });

  onStdio('DL-04 the late result of a call that is over is dropped', async (client, server) => {
    await answers(client, call(1, ['hold'], { deadlineMs: 50 }), failure(1, -32014));
    const slow = client.ask(embedding(2, 'a'));
    client.write(`${cancel(2)}\n`);
    expect((await slow).value).toMatchObject(failure(2, -32006));
    server.engine.release();
    await server.untilBusy(0, 0);
    await answers(client, embedding(3, 'a'), ok(3));
    expect(client.lines).toHaveLength(4);
  });

  onHttp('DL-04 the late result of a call that is over is dropped', async (client, server) => {
    await answers(client, call(1, ['hold'], { deadlineMs: 50 }), failure(1, -32014));
    server.engine.release();
    await answers(client, embedding(3, 'a'), ok(3));
  });
});

describe('1.L cancelling', () => {
  onStdio(
    'CN-01 running work that is cancelled is -32006 at once, and its slot is free again',
    async (client, server) => {
      const slow = client.ask(embedding(7, 'hold'));
      await server.untilBusy(1, 0);
      await within(1500, async () => {
        client.write(`${cancel(7, 'x')}\n`);
        expect((await slow).value).toMatchObject(failure(7, -32006));
      });
      server.engine.release();
      await answers(client, embedding(8, 'a'), ok(8));
    },
  );

  onStdio('CN-01 an id is the same however its letters are spelt', async (client, server) => {
    const slow = client.ask(embedding('a', 'hold'));
    await server.untilBusy(1, 0);
    client.write('{"jsonrpc":"2.0","method":"notifications/cancel","params":{"id":"\\u0061"}}\n');
    expect((await slow).value).toMatchObject(failure('a', -32006));
  });

  onStdio('CN-01 queued work that is cancelled never runs, and its place is free at once', async (client, server) => {
    const accepted = await fillQueue(client, server);
    client.write(`${cancel(4)}\n`);
    expect((await accepted[3])?.value).toMatchObject(failure(4, -32006));
    const next = client.ask(embedding(5, 'a'));
    await server.untilBusy(2, 2);
    // The executor has been given the second call, and has not begun with it.
    client.write(`${cancel(2)}\n`);
    expect((await accepted[1])?.value).toMatchObject(failure(2, -32006));
    server.engine.release();
    expect((await Promise.all([...accepted, next])).map(({ value }) => value)).toMatchObject([
      ok(1),
      failure(2, -32006),
      ok(3),
      failure(4, -32006),
      ok(5),
    ]);
    const ran = server.engine.batches.flatMap(({ items }) => items.map(({ ids }) => Buffer.from(ids).toString()));
    expect(ran).not.toContain('queued 4');
    expect(ran).not.toContain('queued 2');
  });

  onBoth('CN-02 a cancel of what is unknown or finished, or of another type, is a no-op', async (client, server) => {
    await answers(client, embedding(7, 'a'), ok(7));
    await client.tell(cancel(7));
    const slow = client.ask(embedding(8, 'hold'));
    await server.untilBusy(1, 0);
    for (const id of ['8', 9, 8.5, 'x']) await client.tell(cancel(id));
    server.engine.release();
    expect((await slow).value).toMatchObject(ok(8));
    await answers(client, embedding(7, 'a'), ok(7));
  });

  onStdio(
    'CN-02 it is a no-op before initialize too',
    async (client) => {
      await client.tell(cancel(1));
      await answers(client, request(1, 'ping'), pong(1));
    },
    { isFresh: true },
  );

  onHttp('CN-03 over HTTP a cancel from another connection is ignored', async (client, server) => {
    const slow = client.ask(embedding(1, 'hold'));
    await server.untilBusy(1, 0);
    await client.tell(cancel(1));
    server.engine.release();
    expect((await slow).value).toMatchObject(ok(1));
  });

  onHttp('CN-03 with the same session token it is obeyed, with another one not', async (client, server) => {
    const token = async (id: number) => ({
      'RCP-Session': String((await client.ask(request(id, 'initialize'))).value.result._meta.session),
    });
    const [mine, other] = [await token(1), await token(2)];
    const slow = client.post('/rcp/embed', embedding(5, 'hold'), mine);
    await server.untilBusy(1, 0);
    expect((await client.post('/rcp', cancel(5), other)).status).toBe(204);
    await sleep(50);
    expect(server.service.scheduler.gauges.runningItems).toBe(1);
    await within(1500, async () => {
      expect((await client.post('/rcp', cancel(5), mine)).status).toBe(204);
      expect(JSON.parse((await slow).body)).toMatchObject(failure(5, -32006));
    });
  });

  onHttp('CN-04 a caller that leaves cancels its calls: nothing queued of them runs', async (client, server) => {
    const running = client.ask(embedding(1, 'hold'));
    await server.untilBusy(1, 0);
    const { socket } = await client.open();
    const body = embedding(2, 'left behind', 'left behind too');
    socket.write(`POST /rcp/embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await server.untilBusy(2, 1);
    socket.destroy();
    await server.untilBusy(1, 0);
    const next = client.ask(embedding(3, 'a'));
    await server.untilBusy(2, 0);
    server.engine.release();
    expect((await next).value).toMatchObject(ok(3));
    expect((await running).value).toMatchObject(ok(1));
    const ran = server.engine.batches.flatMap(({ items }) => items.map(({ ids }) => Buffer.from(ids).toString()));
    expect(ran).not.toContain('left behind');
  });

  onHttp(
    'CN-04 a caller that leaves while its input runs is forgotten; the device is free when that run is over',
    async (client, server) => {
      const { socket } = await client.open();
      const body = embedding(2, 'hold');
      socket.write(`POST /rcp/embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      await server.untilBusy(1, 0);
      socket.destroy();
      await server.untilBusy(0, 0);
      server.engine.release();
      await within(2000, () => answers(client, embedding(3, 'a'), ok(3)));
    },
  );

  onBoth('CN-05 a cancel of initialize or ping has no effect, whatever its reason', async (client) => {
    for (const reason of ['x', 5, null, {}]) {
      await client.tell(notification('notifications/cancel', { id: 1, reason }));
      await answers(client, request(1, 'ping'), pong(1));
    }
  });
});

describe('1.L failures', () => {
  onBoth(
    'ER-01 a failing input is -32603 under its id without inside knowledge, and the server lives',
    async (client) => {
      const { text, value } = await client.ask(embedding(1, 'boom'));
      expect(value).toMatchObject(failure(1, -32603, { field: 'inputs[0]' }));
      expect(text).not.toMatch(/ at |\.ts|fixture|stack/);
      await answers(client, embedding(2, 'a', 'boom', 'b'), failure(2, -32603, { field: 'inputs[1]' }));
      await answers(client, embedding(3, 'a'), ok(3));
    },
  );

  onBoth('ER-02 a device that is gone is -32010, retryable, and comes back', async (client) => {
    await answers(client, embedding(1, 'down'), failure(1, -32010, { retryable: true }));
    await answers(client, embedding(2, 'a'), ok(2));
  });

  onBoth('ER-03 data holds the known members with their types, never null', async (client) => {
    for (const frame of [
      embedding(1, 1),
      request(1, 'no/such'),
      request(1, 'retrieve'),
      request(1, 'embed', { inputs: [], encoding: 'x' }),
      embedding(1, 'nan'),
      embedding(1, 'boom'),
      'x',
      '{}',
      request(1, 'embed', { inputs: Array(9).fill('a') }),
      request(1, 'initialize', { protocolVersion: -1 }),
    ]) {
      const { data } = (await client.ask(frame)).value.error;
      expect(typeof data.retryable).toBe('boolean');
      expect(Object.values(data as object)).not.toContain(null);
    }
    // The types are the schema's, which each received text is held against.
    expect(client.problems()).toEqual([]);
  });

  onBoth('ER-04 neither log nor messages show a text of a caller', async (client, server) => {
    const secret = 'correct-horse-battery-staple';
    const seen: string[] = [];
    for (const frame of [
      embedding(1, secret),
      embedding(1, secret, 'boom'),
      embedding(1, secret, 'nan'),
      embedding(1, secret, 5),
      request(1, 'embed', { inputs: [secret], kind: secret }),
      request(1, 'rerank', { query: secret, passages: [secret, 'boom'] }),
      request(1, `x/${secret}`),
      `{"jsonrpc":"2.0","id":1,"method":"embed","params":{"inputs":["${secret}"`,
      embedding(1, secret, 'down'),
      JSON.stringify({ [secret]: secret }),
    ]) {
      const { error } = (await client.ask(frame)).value as { error?: unknown };
      seen.push(JSON.stringify({ error }));
    }
    expect(seen.join('\n')).not.toContain(secret);
    expect(server.logText()).toContain('call');
    expect(server.logText()).not.toContain(secret);
  });
});
