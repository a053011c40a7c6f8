import { describe, expect } from 'vitest';
import { batch, embedding, failure, handshake, notification, ok, pong, request } from '../support/harness/frames.ts';
import { answers, onHttp, onStdio } from '../support/harness/rows.ts';

const ping = (id: number) => request(id, 'ping');
const cancel = (id: unknown) => notification('notifications/cancel', { id });
const fresh = { isFresh: true };

describe('1.D batching: sessions and transports', () => {
  onStdio(
    'BA-17 before initialize members are gated as single calls are',
    (client) =>
      answers(client, batch(embedding(1, 'a'), ping(2), request(3, 'no/such')), [
        failure(1, -32001),
        pong(2),
        failure(3, -32001),
      ]),
    fresh,
  );

  onStdio(
    'BA-18 members behind an initialize see the session it opened',
    (client) => answers(client, batch(handshake(1), embedding(2, 'a')), [ok(1, { protocolVersion: 1 }), ok(2)]),
    fresh,
  );

  onStdio(
    'BA-19 members before an initialize do not',
    (client) => answers(client, batch(embedding(2, 'a'), handshake(1)), [failure(2, -32001), ok(1)]),
    fresh,
  );

  onStdio(
    'BA-20 a second initialize in a batch is refused under its id',
    (client) => answers(client, batch(handshake(1), handshake(2)), [ok(1), failure(2, -32600)]),
    fresh,
  );

  onStdio(
    'BA-21 a failed handshake in a batch unlocks nothing',
    (client) =>
      answers(client, batch(request(1, 'initialize', { protocolVersion: 0 }), embedding(2, 'a')), [
        failure(1, -32002),
        failure(2, -32001),
      ]),
    fresh,
  );

  onStdio('BA-24 a later line cancels one member of a running batch', async (client, server) => {
    const started = performance.now();
    const running = client.ask(batch(embedding(5, 'hold'), ping(6)));
    await server.untilBusy(1, 0);
    client.write(`${cancel(5)}\n`);
    expect((await running).value).toMatchObject([failure(5, -32006), pong(6)]);
    expect(performance.now() - started).toBeLessThan(3000);
  });

  onStdio('BA-25 a running batch does not hold up later lines', async (client, server) => {
    const order: string[] = [];
    const running = client.ask(batch(embedding(5, 'hold'), ping(6))).then(() => order.push('batch'));
    await client.ask(ping(7)).then(() => order.push('ping'));
    server.engine.release();
    await running;
    expect(order).toEqual(['ping', 'batch']);
  });

  onStdio('BA-31 a shutdown as a member: the whole array is answered, then nothing more', async (client) => {
    const answer = client.answerTo('[');
    client.write(`${batch(ping(1), request(2, 'shutdown'), ping(3))}\n${ping(4)}\n`);
    expect((await answer).value).toMatchObject([pong(1), ok(2), pong(3)]);
    await client.finished;
    expect(client.lines).toHaveLength(2);
  });

  onStdio('BA-31 members that run when the shutdown is obeyed are answered too', async (client) => {
    const answer = client.answerTo('[');
    client.write(`${batch(embedding(1, 'slow:100'), request(2, 'shutdown'), embedding(3, 'a'))}\n`);
    expect((await answer).value).toMatchObject([ok(1), ok(2), { id: 3 }]);
    await client.finished;
  });

  onStdio('BA-33 the reply to a batch is one line', async (client) => {
    await client.ask(batch(ping(1), cancel(9), request(2, 'info')));
    expect(client.lines).toHaveLength(2);
  });

  onHttp('BA-34 an array is answered with 200 and JSON', async (client) => {
    const { status, headers } = await client.post('/rcp', batch('1', 'null', '{}', ping(9)));
    expect([status, headers['content-type']]).toEqual([200, 'application/json']);
  });

  onHttp('BA-35 arrays are accepted at the base, with a slash, and at /batch', async (client) => {
    for (const path of ['/rcp', '/rcp/', '/rcp/batch', '/rcp/batch/']) {
      const { status, body } = await client.post(path, batch(ping(1)));
      expect(status).toBe(200);
      expect(JSON.parse(body)).toMatchObject([pong(1)]);
    }
  });

  onHttp('BA-36 at the path of a method each member must name that method', async (client) => {
    const { body } = await client.post('/rcp/ping', batch(ping(1), request(2, 'info')));
    expect(JSON.parse(body)).toMatchObject([pong(1), failure(2, -32600)]);
    const { status } = await client.post('/rcp/ping', batch(notification('info'), cancel(1)));
    expect(status).toBe(204);
  });

  onHttp('BA-37 a batch is never answered with an event stream', async (client) => {
    for (const accept of ['text/event-stream', 'application/json, text/event-stream']) {
      const { headers, body } = await client.post('/rcp', batch(ping(1)), { Accept: accept });
      expect(headers['content-type']).toBe('application/json');
      expect(JSON.parse(body)).toMatchObject([pong(1)]);
    }
  });

  onStdio('BA-38 progress of a member is a line of its own, before the array', async (client) => {
    const member = request(1, 'embed', { inputs: ['slow:20', 'a', 'b'], _meta: { progressToken: 't' } });
    await client.ask(batch(member, ping(2)));
    const kinds = client.lines
      .slice(1)
      .map((line) => (line.startsWith('[') ? 'array' : (JSON.parse(line) as { method?: string }).method));
    expect(kinds).toEqual([...Array(kinds.length - 1).fill('notifications/progress'), 'array']);
    expect(kinds.length).toBeGreaterThan(1);
  });

  onStdio('BA-42 the end of input right behind a batch: it is answered, then the session ends', async (client) => {
    const frame = batch(embedding(1, 'slow:100'), ping(2));
    const answer = client.answerTo(frame);
    client.write(frame);
    client.end();
    expect((await answer).value).toMatchObject([ok(1), pong(2)]);
    await client.finished;
  });
});
