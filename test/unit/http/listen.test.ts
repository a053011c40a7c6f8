import { Agent, request as httpRequest } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { pieceBytes } from '../../../src/http/answer.ts';
import { createMemoryBudget } from '../../../src/http/memory-budget.ts';
import { lingerMs } from '../../../src/http/connections.ts';
import { closeGraceMs, listen } from '../../../src/http/listen.ts';
import { gate, reply } from './fake-service.ts';
import { createHarnesses, parseAnswer, post, type Harness } from './harness.ts';

const { start, closeAll } = createHarnesses();
afterEach(closeAll);
const keep = { Connection: 'keep-alive' };

describe('binding', () => {
  it('port 0 takes a free port and says which', async () => {
    const { listener } = await start();
    expect(listener.port).toBeGreaterThan(0);
    expect(listener.url).toBe(`http://127.0.0.1:${String(listener.port)}`);
  });

  it('a taken port is a configuration error that names host and port', async () => {
    const occupant = createServer();
    await new Promise<void>((resolve) => occupant.listen(0, '127.0.0.1', resolve));
    const { port } = occupant.address() as AddressInfo;
    const { clock } = await start();
    const limits = {
      maxConnections: 1,
      headerBytes: 8192,
      headersTimeoutMs: 1000,
      bodyTimeoutMs: 1000,
      answerStallMs: 1000,
    };
    const app = { fetch: () => new Response() } as never;
    const failure = listen({
      app,
      endpoint: { kind: 'tcp', host: '127.0.0.1', port },
      clock,
      limits,
      onStalled: () => undefined,
    });
    await expect(failure).rejects.toBeInstanceOf(ConfigurationError);
    await expect(failure).rejects.toThrow(`127.0.0.1:${String(port)}`);
    await new Promise((resolve) => occupant.close(resolve));
  });
});

describe('connections', () => {
  it('the keep-alive agent of Node reuses one', async () => {
    const { listener } = await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const call = () =>
      new Promise<boolean>((resolve, reject) => {
        const sent = httpRequest({ port: listener.port, path: '/rcp/ping', method: 'POST', agent }, (response) => {
          response.resume().on('end', () => resolve(sent.reusedSocket));
        });
        sent.on('error', reject).end('{}');
      });
    expect([await call(), await call(), await call()]).toEqual([false, true, true]);
    agent.destroy();
  });

  it('above the cap are closed, those below it are served', async () => {
    const harness = await start({}, { maxConnections: 1 });
    const first = await harness.open();
    first.socket.write(post('/rcp/ping', '"one"', keep));
    await first.until(/one/);
    const second = await harness.open();
    expect(await second.ended).toBe('');
    first.socket.write(post('/rcp/ping', '"two"'));
    expect(await first.ended).toContain('two');
  });

  it('a head over the limit is 431', async () => {
    const harness = await start({}, { headerBytes: 1024 });
    expect((await harness.exchange(post('/rcp/ping', '{}', { 'X-Long': 'x'.repeat(2000) }))).status).toBe(431);
  });

  it('junk is 400 and hurts nobody', async () => {
    const harness = await start();
    expect((await harness.exchange('not http\r\n\r\n')).status).toBe(400);
    expect((await harness.exchange(post('/rcp/ping'))).status).toBe(200);
  });
});

describe('closing', () => {
  it('ends idle connections at once, whether they have sent something, half a head, or nothing', async () => {
    const harness = await start();
    const used = await harness.open();
    used.socket.write(post('/rcp/ping', '"used"', keep));
    await used.until(/used/);
    const half = await harness.open();
    half.socket.write('POST /rcp/ping HTTP/1.1\r\nHo');
    const silent = await harness.open();
    // One more exchange makes sure that the server has accepted the connections before it.
    await harness.exchange(post('/rcp/ping'));
    await harness.close(60_000);
    expect(await silent.ended).toBe('');
    expect(await half.ended).toBe('');
    expect(await used.ended).toContain('used');
  });

  it('lets a running request finish, with Connection: close, and then resolves', async () => {
    const harness = await start();
    const slow = gate();
    harness.service.handle = async () => {
      await slow.promise;
      return reply('"done"');
    };
    const running = await harness.open();
    running.socket.write(post('/rcp/embed', '{}', keep));
    await harness.service.received(1);
    let isClosed = false;
    const closed = harness.listener.close({ drainMs: 60_000 }).then(() => {
      isClosed = true;
    });
    await harness.clock.advance(59_999);
    expect(isClosed).toBe(false);
    slow.open();
    const answer = parseAnswer(await running.ended);
    expect([answer.status, answer.headers.get('connection'), answer.body]).toEqual([200, 'close', '"done"']);
    await closed;
    expect(harness.clock.pendingTimers()).toBe(0);
  });

  it('ends a kept connection whose stream was already open, after its answer', async () => {
    const harness = await start();
    const slow = gate();
    harness.service.handle = async (_, { notify }) => {
      notify?.('{"p":0}');
      await slow.promise;
      return reply('"done"');
    };
    const running = await harness.open();
    running.socket.write(post('/rcp/embed', '{}', { ...keep, Accept: 'text/event-stream' }));
    await running.until(/data: {"p":0}/);
    const closed = harness.close(60_000);
    slow.open();
    expect(await running.ended).toContain('data: "done"');
    await closed;
  });

  it('cuts what is still running when the drain time is over', async () => {
    const harness = await start();
    harness.service.handle = (_, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve(reply('{}')));
      });
    const running = await harness.open();
    running.socket.write(post('/rcp/embed', '{}', keep));
    await harness.service.received(1);
    const closed = harness.listener.close({ drainMs: 1000 });
    await harness.clock.advance(1000 + closeGraceMs);
    await closed;
    expect(await running.ended).toBe('');
  });

  it('still answers what arrives within its grace, and closes that connection', async () => {
    const harness = await start();
    const kept = await harness.open();
    kept.socket.write(post('/rcp/ping', '"before"', keep));
    await kept.until(/before/);
    const closed = harness.listener.close({ drainMs: 1000 });
    kept.socket.write(post('/rcp/ping', '"late"', keep));
    expect(await kept.ended).toMatch(/Connection: close[\s\S]*late/i);
    await harness.clock.advance(closeGraceMs);
    await closed;
  });

  it('refuses new connections', async () => {
    const harness = await start();
    await harness.close(1000);
    await expect(harness.open()).rejects.toThrow('ECONNREFUSED');
  });

  it('sends every byte of an answer that was being sent, to a reader that is slow', async () => {
    const harness = await start({ memory: createMemoryBudget(100_000_000) });
    const bytes = 30_000_000;
    harness.service.handle = () => reply(`"${'x'.repeat(bytes - 2)}"`);
    const reader = await harness.open();
    reader.socket.pause();
    reader.socket.write(post('/rcp/embed', '{}', keep));
    await harness.service.received(1);
    const closed = harness.close(60_000);
    reader.socket.resume();
    expect(parseAnswer(await reader.ended).body).toHaveLength(bytes);
    await closed;
  });

  it('sends every answer that was handed over whole, however much of it still waits to leave', async () => {
    const harness = await start({ memory: createMemoryBudget(100_000_000) });
    const answer = `"${'x'.repeat(pieceBytes - 2)}"`;
    const count = 300;
    harness.service.handle = () => reply(answer);
    const reader = await harness.open();
    reader.socket.pause();
    reader.socket.write(Buffer.concat(Array.from({ length: count }, () => post('/rcp/embed', '{}', keep))));
    await harness.service.received(count);
    const closed = harness.close(60_000);
    reader.socket.resume();
    expect((await reader.ended).split(answer)).toHaveLength(count + 1);
    await closed;
  });

  const half = 'POST /rcp/ping HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400\r\n\r\n{"id":7,';

  it('does not wait for a request whose body is still on its way, but answers it', async () => {
    const harness = await start();
    const connection = await harness.open();
    connection.socket.write(half);
    // One more exchange makes sure that the server has read what came before it.
    await harness.exchange(post('/rcp/ping'));
    await harness.close(60_000);
    const answer = parseAnswer(await connection.ended);
    expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close']);
    expect(JSON.parse(answer.body)).toMatchObject({ id: 7, error: { code: -32010, data: { retryable: true } } });
    expect(harness.refused).toEqual(['draining']);
    expect(harness.service.calls).toHaveLength(1);
    await expect.poll(() => harness.clock.pendingTimers(), { interval: 5 }).toBe(0);
  });

  it('does not reset a sender that goes on sending behind that answer, for a while', async () => {
    const harness = await start();
    const connection = await harness.open({ allowHalfOpen: true });
    const errors: Error[] = [];
    connection.socket.on('error', (error) => errors.push(error));
    connection.socket.write(half);
    await harness.exchange(post('/rcp/ping'));
    const closed = harness.close(60_000);
    await connection.until(/-32010/);
    for (let sent = 0; sent < 5; sent += 1) {
      await new Promise<void>((resolve) => connection.socket.write(' '.repeat(10), () => resolve()));
    }
    await harness.clock.advance(lingerMs - 1);
    expect([errors, connection.socket.closed]).toEqual([[], false]);
    await harness.clock.advance(1);
    await closed;
    connection.socket.destroy();
  });

  it('ends the connection of such a sender once its body is whole', async () => {
    const harness = await start();
    const connection = await harness.open({ allowHalfOpen: true });
    connection.socket.write(half);
    await harness.exchange(post('/rcp/ping'));
    const closed = harness.close(60_000);
    await connection.until(/-32010/);
    connection.socket.write(' '.repeat(400 - '{"id":7,'.length));
    await closed;
    expect(harness.service.calls).toHaveLength(1);
    connection.socket.destroy();
  });
});

describe('an answer that nobody reads', () => {
  const bytes = 30_000_000;
  const startBig = async () => {
    const memory = createMemoryBudget(3 * bytes);
    const harness = await start({ memory }, { answerStallMs: 1000 });
    harness.service.handle = () => reply(`"${'x'.repeat(bytes - 2)}"`);
    const isWholeAgain = () => {
      const share = memory.open();
      const hasRoom = share.claim(3 * bytes);
      share.release();
      return hasRoom;
    };
    const reader = await harness.open();
    reader.socket.pause();
    return { harness, reader, isWholeAgain };
  };
  const watchBegun = (harness: Harness) => expect.poll(() => harness.clock.pendingTimers(), { interval: 5 }).toBe(1);

  it.each([
    ['JSON', {}],
    ['an event stream', { Accept: 'text/event-stream' }],
  ])('as %s is given up after the stall time, counted, and its memory given back', async (_, headers) => {
    const { harness, reader, isWholeAgain } = await startBig();
    reader.socket.write(post('/rcp/embed', '{}', { ...keep, ...headers }));
    await watchBegun(harness);
    expect(isWholeAgain()).toBe(false);
    // What the kernel takes is progress too: from some round on it takes no more.
    await expect
      .poll(() => harness.clock.advance(1000).then(() => harness.refused), { interval: 20 })
      .toEqual(['stalled']);
    await expect.poll(isWholeAgain, { interval: 5 }).toBe(true);
    reader.socket.resume();
    expect((await reader.ended).length).toBeLessThan(bytes);
    expect(harness.clock.pendingTimers()).toBe(0);
  });

  it('is given up together with what was pipelined behind it', async () => {
    const { harness, reader, isWholeAgain } = await startBig();
    reader.socket.write(Buffer.concat([post('/rcp/embed', '{}', keep), post('/rcp/embed', '{}', keep)]));
    await harness.service.received(2);
    await expect
      .poll(() => harness.clock.advance(1000).then(() => harness.refused), { interval: 20 })
      .toEqual(['stalled']);
    await expect.poll(isWholeAgain, { interval: 5 }).toBe(true);
    expect(harness.clock.pendingTimers()).toBe(0);
    reader.socket.destroy();
  });

  it('is not given up while it waits behind a call that still runs on its connection', async () => {
    const { harness, reader } = await startBig();
    const slow = gate();
    harness.service.handle = async (text) => {
      if (text === '0') await slow.promise;
      return reply(`"${'x'.repeat(bytes - 2)}"`);
    };
    reader.socket.write(Buffer.concat([post('/rcp/embed', '0', keep), post('/rcp/embed', '1', keep)]));
    await watchBegun(harness);
    await harness.clock.advance(10_000);
    expect(harness.refused).toEqual([]);
    slow.open();
    reader.socket.resume();
    await expect.poll(() => reader.text().length, { timeout: 10_000, interval: 20 }).toBeGreaterThan(2 * bytes);
    reader.socket.destroy();
  });

  it('is not given up while some of it leaves within each stall time', async () => {
    const { harness, reader } = await startBig();
    reader.socket.write(post('/rcp/embed', '{}', keep));
    await watchBegun(harness);
    let seen = 0;
    let rounds = 0;
    reader.socket.on('data', () => {
      if (reader.text().length < seen + bytes / 5) return;
      seen = reader.text().length;
      rounds += 1;
      reader.socket.pause();
      void harness.clock.advance(999).then(() => reader.socket.resume());
    });
    reader.socket.resume();
    await expect.poll(() => parseAnswer(reader.text()).body.length, { timeout: 10_000 }).toBe(bytes);
    expect(rounds).toBeGreaterThan(3);
    expect(harness.refused).toEqual([]);
    reader.socket.destroy();
  });
});
