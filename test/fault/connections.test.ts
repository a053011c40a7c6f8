/** Owns connections that do nothing, end by halves, or stay between calls. */
import { describe, expect, it } from 'vitest';
import { embedding, ok } from '../support/harness/frames.ts';
import { closedAfterEach, embedRequest } from '../support/harness/opened.ts';

const start = closedAfterEach();

/** What common balancers keep an idle connection for; one of a server must last longer. @unit s */
const balancerIdleSeconds = 75;

describe('an idle connection', () => {
  it('is kept for longer than balancers keep theirs, so that no call meets a closing one', async () => {
    const { client } = await start();
    const { headers } = await client.post('/rcp/embed', embedding(1, 'a'));
    const [, seconds] = /timeout=(\d+)/.exec(String(headers['keep-alive'])) ?? [];
    expect(Number(seconds)).toBeGreaterThan(balancerIdleSeconds);
  });

  it('costs nobody a call: those that come beside hundreds of silent ones are answered, and these stay open', async () => {
    const { client } = await start();
    const idle = await Promise.all(Array.from({ length: 300 }, () => client.open()));
    for (let id = 0; id < 5; id += 1) {
      expect((await client.ask(embedding(id, 'a'))).value).toMatchObject(ok(id));
    }
    expect(idle.filter(({ socket }) => socket.destroyed || socket.readableEnded)).toEqual([]);
  });
});

describe('a connection whose caller', () => {
  it('has ended its half after the request is gone: its call is cancelled, it is closed, and others are served', async () => {
    const { server, client } = await start();
    const { socket, ended } = await client.open();
    socket.write(embedRequest(embedding(1, 'hold')));
    await server.untilBusy(1, 0);
    // Nothing tells this from a caller that has left, for whom nothing may run.
    socket.end();
    await server.untilBusy(0, 0);
    expect(await ended).toBe('');
    server.engine.release();
    expect((await client.ask(embedding(2, 'a'))).value).toMatchObject(ok(2));
  });

  it('has ended its half in the middle of a body is closed, and nothing of it runs', async () => {
    const { server, client } = await start();
    const { socket, ended } = await client.open();
    const whole = embedRequest(embedding(1, 'never run'));
    socket.end(whole.slice(0, -5));
    expect(await ended).not.toMatch(/^HTTP\/1\.1 200/);
    expect((await client.ask(embedding(2, 'a'))).value).toMatchObject(ok(2));
    expect(server.service.scheduler.gauges).toMatchObject({ queuedItems: 0, runningItems: 0 });
  });

  it('never says anything is ended when the time for a head is over, while others are served', async () => {
    const { client } = await start({ headersTimeoutMs: 100 });
    const { ended } = await client.open();
    const { socket, ended: halfEnded } = await client.open();
    socket.write('POST /rcp/embed HTTP/1.1\r\nHo');
    expect((await client.ask(embedding(1, 'a'))).value).toMatchObject(ok(1));
    expect(await halfEnded).toMatch(/^HTTP\/1\.1 408 /);
    expect(await ended).toMatch(/^(HTTP\/1\.1 408 |$)/);
  });
});
