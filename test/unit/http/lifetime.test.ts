import { afterEach, describe, expect, it } from 'vitest';
import { gate, reply } from './fake-service.ts';
import { createHarnesses, parseAnswer, post } from './harness.ts';

const { start, closeAll } = createHarnesses();
afterEach(closeAll);

describe('time and loss', () => {
  it('a body that stops arriving is 408 after its time limit, and others are not affected', async () => {
    const harness = await start();
    const stalled = await harness.open();
    stalled.socket.write('POST /rcp/ping HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"a"');
    expect((await harness.exchange(post('/rcp/ping'))).status).toBe(200);
    await harness.clock.advance(9_999);
    expect(stalled.text()).toBe('');
    await harness.clock.advance(1);
    const answer = parseAnswer(await stalled.ended);
    expect([answer.status, answer.body]).toEqual([408, '']);
    expect(harness.service.calls).toHaveLength(1);
    expect(harness.refused).toEqual(['timeout']);
  });

  it('a caller that leaves in the middle of its upload is forgotten', async () => {
    const harness = await start();
    const connection = await harness.open();
    connection.socket.write('POST /rcp/ping HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"a"');
    // The answer to a second connection shows that the server has seen the first.
    await harness.exchange(post('/rcp/ping'));
    expect(harness.clock.pendingTimers()).toBe(1);
    connection.socket.destroy();
    await connection.ended;
    await harness.close(60_000);
    expect(harness.clock.pendingTimers()).toBe(0);
    expect([harness.service.calls.length, harness.refused, harness.errors]).toEqual([1, [], []]);
  });

  it.each(['destroy', 'resetAndDestroy'] as const)(
    'a caller that leaves by %s aborts the signal of its call',
    async (leave) => {
      const harness = await start();
      const aborted = gate();
      harness.service.handle = (_, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            aborted.open();
            resolve(reply('{}'));
          });
        });
      const connection = await harness.open();
      connection.socket.write(post('/rcp/embed', '{}', { Connection: 'keep-alive' }));
      await harness.service.received(1);
      connection.socket[leave]();
      await aborted.promise;
      harness.service.handle = () => reply('"next"');
      expect((await harness.exchange(post('/rcp/ping'))).body).toBe('"next"');
      expect(harness.errors).toEqual([]);
    },
  );

  it('a caller that leaves aborts also what it had pipelined', async () => {
    const harness = await start();
    const aborted = [gate(), gate()];
    harness.service.handle = (text, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted[Number(text)]?.open();
          resolve(reply('{}'));
        });
      });
    const connection = await harness.open();
    const keep = { Connection: 'keep-alive' };
    connection.socket.write(Buffer.concat([post('/rcp/x', '0', keep), post('/rcp/x', '1', keep)]));
    await harness.service.received(2);
    connection.socket.destroy();
    await Promise.all(aborted.map(({ promise }) => promise));
  });

  it('a call that is done is not aborted when its connection closes later', async () => {
    const harness = await start();
    await harness.exchange(post('/rcp/ping'));
    expect(harness.service.calls[0]?.context.signal.aborted).toBe(false);
  });

  it('a failure that leaves no answer is 500 with an empty body and is logged', async () => {
    const harness = await start();
    const bug = new Error('bug');
    harness.service.handle = () => {
      throw bug;
    };
    const answer = await harness.exchange(post('/rcp/ping'));
    expect([answer.status, answer.headers.get('content-length'), answer.body]).toEqual([500, '0', '']);
    expect(harness.errors).toEqual([bug]);
  });

  it('a draining server finishes what it accepted, refuses what is new, and closes after both', async () => {
    let isDraining = false;
    const harness = await start({ isDraining: () => isDraining });
    const slow = gate();
    harness.service.handle = async () => {
      await slow.promise;
      return reply('"done"');
    };
    const accepted = await harness.open();
    accepted.socket.write(post('/rcp/embed', '{}', { Connection: 'keep-alive' }));
    await harness.service.received(1);
    isDraining = true;
    const late = await harness.exchange(post('/rcp/embed', '{"id":"x"}', { Connection: 'keep-alive' }));
    expect(late.headers.get('connection')).toBe('close');
    expect(JSON.parse(late.body)).toMatchObject({ id: 'x', error: { code: -32010, data: { retryable: true } } });
    slow.open();
    const done = parseAnswer(await accepted.ended);
    expect([done.headers.get('connection'), done.body]).toEqual(['close', '"done"']);
    expect(harness.service.calls).toHaveLength(1);
  });
});
