import { afterEach, describe, expect, it } from 'vitest';
import { chooseFormat } from '../../../src/http/accept.ts';
import { gate, reply } from './fake-service.ts';
import { createHarnesses, parseAnswer, post } from './harness.ts';

const { start, closeAll } = createHarnesses();
afterEach(closeAll);
const stream = { Accept: 'text/event-stream' };
const withToken = '{"id":1,"params":{"_meta":{"progressToken":"t"}}}';

/** The payload of a chunked body. */
const unchunk = (body: string): string => {
  let text = '';
  for (let at = 0; ;) {
    const end = body.indexOf('\r\n', at);
    const size = parseInt(body.slice(at, end), 16);
    if (!(size > 0)) return text;
    text += body.slice(end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
};

describe('the format of an answer', () => {
  it.each([
    [undefined, 'json', 'json'],
    ['', 'json', 'json'],
    ['*/*', 'json', 'json'],
    ['text/*', 'json', 'json'],
    ['application/json', 'json', 'json'],
    ['text/event-stream', 'eventStream', 'eventStream'],
    ['TEXT/Event-Stream', 'eventStream', 'eventStream'],
    ['text/event-stream;q=0.1', 'eventStream', 'eventStream'],
    ['text/event-stream; charset=utf-8', 'eventStream', 'eventStream'],
    ['text/event-stream, application/json;q=0', 'eventStream', 'eventStream'],
    ['text/event-stream, application/json;q=0, */*', 'eventStream', 'eventStream'],
    ['application/json, text/event-stream', 'json', 'eventStream'],
    ['text/event-stream, */*;q=0.1', 'json', 'eventStream'],
    ['text/event-stream;q=0, application/json', 'json', 'json'],
    ['text/event-stream;q=0', 'json', 'json'],
    ['text/event-stream;q=0.000', 'json', 'json'],
    ['text/event-stream;q=junk', 'json', 'json'],
    ['x-text/event-stream', 'json', 'json'],
  ])('Accept %s: without token %s, with token %s', (accept, without, withOne) => {
    expect(chooseFormat({ accept, isBatch: false, hasProgressToken: () => false })).toBe(without);
    expect(chooseFormat({ accept, isBatch: false, hasProgressToken: () => true })).toBe(withOne);
    expect(chooseFormat({ accept, isBatch: true, hasProgressToken: () => true })).toBe('json');
  });
});

describe('an event stream', () => {
  it('holds progress frames, then the answer, and nothing else', async () => {
    const harness = await start();
    harness.service.handle = (_, { notify }) => {
      notify?.('{"p":1}');
      notify?.('{"p":2}');
      return reply('{"id":1,"result":{}}');
    };
    const answer = await harness.exchange(post('/rcp/embed', withToken, stream));
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    expect(answer.headers.get('x-accel-buffering')).toBe('no');
    expect(unchunk(answer.body)).toBe('data: {"p":1}\n\ndata: {"p":2}\n\ndata: {"id":1,"result":{}}\n\n');
  });

  it('delivers a frame while the call still runs', async () => {
    const harness = await start();
    const rest = gate();
    harness.service.handle = async (_, { notify }) => {
      notify?.('{"p":0.5}');
      await rest.promise;
      return reply('{}');
    };
    const connection = await harness.open();
    connection.socket.write(post('/rcp/embed', withToken, stream));
    await connection.until(/data: {"p":0\.5}\n\n/);
    rest.open();
    expect(unchunk(parseAnswer(await connection.ended).body)).toMatch(/data: {}\n\n$/);
  });

  it('carries errors as its last frame with status 200, also those that come before parsing', async () => {
    const harness = await start();
    const answer = await harness.exchange(post('/rcp/embed', 'x'.repeat(1001), stream));
    expect(answer.status).toBe(200);
    expect(unchunk(answer.body)).toMatch(/^data: {.*"code":-32013.*}\n\n$/);
  });

  it('is not opened for a notification, which is 204', async () => {
    const harness = await start();
    harness.service.handle = () => reply(null);
    const answer = await harness.exchange(post('/rcp/embed', '{"method":"embed"}', stream));
    expect([answer.status, answer.body]).toEqual([204, '']);
  });

  it('is not opened for a batch, which gets one buffered array and no progress', async () => {
    const harness = await start();
    harness.service.handle = () => reply('[{}]');
    const answer = await harness.exchange(post('/rcp', ` [${withToken}]`, stream));
    expect([answer.headers.get('content-type'), answer.body]).toEqual(['application/json', '[{}]']);
    expect(harness.service.calls[0]?.context.notify).toBeNull();
  });

  it('is not opened where nobody asked for it, and then progress has nowhere to go', async () => {
    const harness = await start();
    const answer = await harness.exchange(post('/rcp/embed', withToken, { Accept: '*/*' }));
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(harness.service.calls[0]?.context.notify).toBeNull();
  });

  it('drops progress, never the answer, while its reader does not read', async () => {
    const harness = await start();
    const sent = gate();
    const frame = JSON.stringify({ p: 'x'.repeat(100_000) });
    const frames = 300;
    harness.service.handle = async (_, { notify }) => {
      for (let count = 0; count < frames; count++) {
        notify?.(frame);
        await new Promise((resolve) => setImmediate(resolve));
      }
      sent.open();
      return reply('"answer"');
    };
    const connection = await harness.open();
    connection.socket.pause();
    connection.socket.write(post('/rcp/embed', withToken, stream));
    await sent.promise;
    connection.socket.resume();
    const text = unchunk(parseAnswer(await connection.ended).body);
    expect(text.endsWith('data: "answer"\n\n')).toBe(true);
    expect(text.split('\n\n').length - 2).toBeLessThan(frames);
  });

  it('of a caller that left is not written to', async () => {
    const harness = await start();
    const done = gate();
    harness.service.handle = (_, { signal, notify }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          notify?.('{"late":1}');
          resolve(reply('{}'));
          done.open();
        });
      });
    const connection = await harness.open();
    connection.socket.write(post('/rcp/embed', withToken, stream));
    await harness.service.received(1);
    connection.socket.destroy();
    await done.promise;
    harness.service.handle = () => reply('{}');
    expect((await harness.exchange(post('/rcp', '{}'))).status).toBe(200);
    expect(harness.errors).toEqual([]);
  });
});
