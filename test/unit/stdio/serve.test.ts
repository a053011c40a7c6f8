import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { maxBufferedOutputBytes } from '../../../src/stdio/frame-writer.ts';
import { gate, reply } from '../http/fake-service.ts';
import { drainMs, startSession } from './session.ts';

describe('a stdio session', () => {
  it('answers each line with one line and hands the session and no path over', async () => {
    const { input, service, session, lines } = startSession();
    service.handle = (text) => reply(`{"echo":${text}}`);
    input.write('1\n2\n');
    expect(await lines()).toEqual(['{"echo":1}', '{"echo":2}']);
    expect(service.calls[0]?.context).toMatchObject({ transport: 'stdio', pathMethod: null });
    expect(service.calls[1]?.context.session).toBe(session);
  });

  it('writes nothing, not even an empty line, when there is nothing to answer', async () => {
    const { input, service, lines } = startSession();
    service.handle = (text) => (text === '1' ? reply(null) : reply(text));
    input.write('\n1\n\n2\n');
    expect(await lines()).toEqual(['2']);
  });

  it('a slow frame never blocks the next one', async () => {
    const { input, service, lines } = startSession();
    const slow = gate();
    service.handle = async (text) => {
      if (text === '1') await slow.promise;
      return reply(text);
    };
    input.write('1\n2\n');
    expect(await lines()).toEqual(['2']);
    slow.open();
    expect(await lines()).toEqual(['2', '1']);
  });

  it('notifications come at once, before their answer, and none after it', async () => {
    const { input, service, lines } = startSession();
    const slow = gate();
    service.handle = async (text, { notify }) => {
      notify?.('"progress"');
      await slow.promise;
      return reply(text);
    };
    input.write('1\n');
    expect(await lines()).toEqual(['"progress"']);
    slow.open();
    expect(await lines()).toEqual(['"progress"', '1']);
    service.calls[0]?.context.notify?.('"late"');
    expect(await lines()).toEqual(['"progress"', '1']);
  });

  it('what never became text is answered and the session goes on', async () => {
    const { input, lines, service } = startSession();
    service.handle = (text) => reply(text);
    input.write(Buffer.from([0x22, 0xff, 0x22, 0x0a]));
    input.write(`{"id":7,"x":"${'x'.repeat(1000)}"}\n`);
    input.write('1\n');
    const [notUtf8, tooLarge, next] = (await lines()).map((line) => JSON.parse(line) as unknown);
    expect(notUtf8).toMatchObject({ id: null, error: { code: -32700 } });
    expect(tooLarge).toMatchObject({ id: 7, error: { code: -32013, data: { retryable: false } } });
    expect(next).toBe(1);
  });

  it('a failing service is answered -32603 under the id of the frame and logged', async () => {
    const { input, service, lines, errors } = startSession();
    const bug = new Error('bug');
    service.handle = () => Promise.reject(bug);
    input.write('{"id":"a","method":"x"}\n');
    expect(JSON.parse((await lines())[0] ?? '')).toMatchObject({ id: 'a', error: { code: -32603 } });
    expect(errors).toEqual([bug]);
  });

  it('handles no more than maxInFlightFrames at a time and stops reading meanwhile', async () => {
    const { input, service, lines } = startSession({
      limits: { frameBytes: 1000, maxInFlightFrames: 2, drainMs, shutdownMs: drainMs },
    });
    const gates = [gate(), gate(), gate()];
    service.handle = async (text) => {
      await gates[Number(text)]?.promise;
      return reply(text);
    };
    input.write('0\n1\n2\n');
    expect(await lines()).toEqual([]);
    expect(service.calls).toHaveLength(2);
    expect(input.isPaused()).toBe(true);
    gates[1]?.open();
    expect(await lines()).toEqual(['1']);
    expect(service.calls).toHaveLength(3);
    gates[0]?.open();
    gates[2]?.open();
    expect((await lines()).sort()).toEqual(['0', '1', '2']);
    expect(input.isPaused()).toBe(false);
  });
});

describe('a reader that is slow or gone', () => {
  it('stops the reading of input while too much is unread, and starts it again', async () => {
    const output = new PassThrough({ highWaterMark: 10 });
    const session = startSession({ output });
    const big = JSON.stringify('x'.repeat(maxBufferedOutputBytes));
    session.service.handle = () => reply(big);
    session.input.write('1\n2\n');
    await session.settle();
    session.input.write('3\n');
    await session.settle();
    expect(session.input.isPaused()).toBe(true);
    expect(session.service.calls.map(({ text }) => text)).not.toContain('3');
    output.resume();
    await session.service.received(3);
    await session.settle();
    expect(session.input.isPaused()).toBe(false);
  });

  it('loses progress, not answers, while too much is unread', async () => {
    const output = new PassThrough({ highWaterMark: 10 });
    const session = startSession({ output });
    session.service.handle = (_, { notify }) => {
      notify?.(JSON.stringify('x'.repeat(maxBufferedOutputBytes)));
      notify?.('"dropped"');
      return reply('"answer"');
    };
    session.input.end('1\n');
    let text = '';
    output.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    await session.server.finished;
    await session.settle();
    expect(text).toMatch(/x"\n"answer"\n$/);
  });

  it('that never reads again cannot hold the end up', async () => {
    const output = new Writable({ write: () => undefined });
    const session = startSession({ output });
    session.service.handle = (text) => reply(text);
    session.input.end('1\n');
    await session.clock.advance(drainMs);
    expect(session.isFinished()).toBe(true);
  });

  it('EPIPE ends the session quietly and aborts what is running', async () => {
    const output = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
    });
    const session = startSession({ output });
    session.service.handle = (text) => (text === '1' ? new Promise(() => undefined) : reply(text));
    session.input.write('1\n2\n');
    await session.server.finished;
    expect(session.service.calls[0]?.context.signal.aborted).toBe(true);
    expect(session.errors).toEqual([]);
    expect(session.clock.pendingTimers()).toBe(0);
  });

  it('an input that fails counts as its end', async () => {
    const session = startSession();
    session.input.destroy(new Error('EIO'));
    await session.server.finished;
  });
});
