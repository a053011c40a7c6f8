/** Owns what an overload does to work: who is refused, when, and what never reaches a device. */
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { embedding, failure, ok, request } from '../support/harness/frames.ts';
import { closedAfterEach, embedRequest } from '../support/harness/opened.ts';
import type { TestServer } from '../support/harness/server.ts';

const start = closedAfterEach();

const many = <Made>(count: number, make: (index: number) => Made) => Array.from({ length: count }, (_, at) => make(at));
/** Every text that has reached the executor. */
const textsRun = ({ engine }: TestServer) =>
  engine.batches.flatMap(({ items }) => items.map(({ ids }) => Buffer.from(ids).toString()));
/** Resolves when so many texts wait or have been given to the executor behind the one that runs. */
async function untilBehind({ service }: TestServer, count: number): Promise<void> {
  const { gauges } = service.scheduler;
  while (gauges.runningItems + gauges.queuedItems - 1 !== count) await wait(2);
}

describe('a server that gets ten times what its queue holds', () => {
  it('refuses while its device stands still, so that no refusal waits for one', async () => {
    const { server, client } = await start({ maxQueuedItems: 10 });
    const held = client.ask(embedding('held', 'hold'));
    await server.untilBusy(1, 0);
    const calls = many(100, (id) => client.post('/rcp/embed', embedding(id, `text ${String(id)}`)));
    const refused = new Set<number>();
    const settled = calls.map(async (call, id) => {
      const { headers, body } = await call;
      const answer = JSON.parse(body);
      if (answer.error === undefined) return answer;
      refused.add(id);
      expect(answer).toMatchObject(failure(id, -32011));
      const { retryAfterMs } = answer.error.data as { retryAfterMs: number };
      expect(headers['retry-after']).toBe(String(Math.ceil(retryAfterMs / 1000)));
      return answer;
    });
    const { gauges } = server.service.scheduler;
    while (refused.size + gauges.queuedItems + gauges.runningItems - 1 < 100) await wait(2);
    // One more than the queue holds may have been given to the executor.
    expect(refused.size).toBeGreaterThanOrEqual(89);
    server.engine.release();
    const answers = await Promise.all(settled);
    expect(answers.filter(({ result }) => result !== undefined)).toHaveLength(100 - refused.size);
    expect(await held).toMatchObject({ value: ok('held') });
  });

  it('never runs a text of a call that it refused, and each text of the others once', async () => {
    const { server, client } = await start({ maxQueuedItems: 10 });
    const held = client.ask(embedding('held', 'hold'));
    await server.untilBusy(1, 0);
    const calls = many(100, (id) => client.ask(embedding(id, `text ${String(id)}`)));
    while (server.service.scheduler.gauges.queuedItems < 10) await wait(2);
    server.engine.release();
    const values = (await Promise.all(calls)).map(({ value }) => value);
    await held;
    const answered = values.flatMap(({ result }, id) => (result === undefined ? [] : [`text ${String(id)}`]));
    const ran = textsRun(server).filter((text) => text.startsWith('text '));
    expect(ran.sort()).toEqual(answered.sort());
  });

  it('takes a full queue of calls again as soon as the first one has been served', async () => {
    const { server, client } = await start({ maxQueuedItems: 10 });
    for (const round of ['first', 'second']) {
      const calls = many(11, (id) => client.ask(embedding(id, `${round} ${String(id)}`)));
      server.engine.release();
      expect((await Promise.all(calls)).map(({ value }) => value)).toMatchObject(many(11, (id) => ok(id)));
    }
  });
});

describe('a hundred callers that vanish', () => {
  it('while their work waits leave nothing in the queue, and none of it reaches a device', async () => {
    const { server, client } = await start({ maxQueuedItems: 1000 });
    const held = client.ask(embedding('held', 'hold'));
    await server.untilBusy(1, 0);
    const connections = await Promise.all(many(100, () => client.open()));
    connections.forEach(({ socket }, at) => socket.write(embedRequest(embedding(at, `vanished ${String(at)}`))));
    await untilBehind(server, 100);
    connections.forEach(({ socket }, at) => (at % 2 === 0 ? socket.destroy() : socket.resetAndDestroy()));
    await untilBehind(server, 0);
    server.engine.release();
    expect((await held).value).toMatchObject(ok('held'));
    expect((await client.ask(embedding('next', 'stays'))).value).toMatchObject(ok('next'));
    expect(textsRun(server).filter((text) => text.startsWith('vanished'))).toEqual([]);
    expect(textsRun(server)).toContain('stays');
  });

  it('behind each other on one connection take all of their work with them', async () => {
    const { server, client } = await start({ maxQueuedItems: 1000 });
    const held = client.ask(embedding('held', 'hold'));
    await server.untilBusy(1, 0);
    const { socket } = await client.open();
    socket.write(many(100, (at) => embedRequest(embedding(at, `vanished ${String(at)}`))).join(''));
    await untilBehind(server, 100);
    socket.destroy();
    await untilBehind(server, 0);
    server.engine.release();
    await held;
    expect(textsRun(server).filter((text) => text.startsWith('vanished'))).toEqual([]);
  });
});

describe('calls whose deadline passes while they wait', () => {
  it('are answered although the device stands still, and their work never reaches it', async () => {
    const { server, client } = await start({ maxQueuedItems: 1000 });
    const held = client.ask(embedding('held', 'hold'));
    await server.untilBusy(1, 0);
    const late = many(20, (id) =>
      client.ask(request(id, 'embed', { inputs: [`late ${String(id)}`], _meta: { deadlineMs: 50 } })),
    );
    const values = (await Promise.all(late)).map(({ value }) => value);
    for (const [id, value] of values.entries()) {
      const { code } = value.error;
      expect(value).toMatchObject(failure(id, code));
      // Over its deadline already, or certain to be: both are right, and both may be tried again.
      expect([-32014, -32011]).toContain(code);
    }
    await untilBehind(server, 0);
    server.engine.release();
    await held;
    expect(textsRun(server).filter((text) => text.startsWith('late'))).toEqual([]);
  });
});
