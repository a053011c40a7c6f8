import { describe, expect, it } from 'vitest';
import { abortGraceMs, maxStopMs } from '../../../src/stdio/serve.ts';
import { gate, reply } from '../http/fake-service.ts';
import { drainMs, startSession } from './session.ts';

describe('the end of the input', () => {
  it('lets everything that was accepted finish, the last line without line end included', async () => {
    const session = startSession();
    const slow = gate();
    session.service.handle = async (text) => {
      await slow.promise;
      return reply(text);
    };
    session.input.end('1\n2');
    await session.clock.advance(drainMs - 1);
    expect(session.isFinished()).toBe(false);
    slow.open();
    expect(await session.lines()).toEqual(['1', '2']);
    expect(session.isFinished()).toBe(true);
    expect(session.clock.pendingTimers()).toBe(0);
  });

  it('finishes at once when nothing is running', async () => {
    const session = startSession();
    session.input.end();
    await session.server.finished;
    expect(await session.lines()).toEqual([]);
  });

  it('starts what had arrived but waited for a free place', async () => {
    const session = startSession({ limits: { frameBytes: 1000, maxInFlightFrames: 1, drainMs, shutdownMs: drainMs } });
    session.service.handle = (text) => reply(text);
    session.input.end('1\n2\n3\n');
    await session.server.finished;
    expect(await session.lines()).toEqual(['1', '2', '3']);
  });

  it('aborts what is still running after drainMs, writes its last word, and finishes', async () => {
    const session = startSession();
    session.service.handle = (_, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve(reply('"cancelled"')));
      });
    session.input.end('1\n');
    await session.clock.advance(drainMs);
    expect(await session.lines()).toEqual(['"cancelled"']);
    expect(session.isFinished()).toBe(true);
  });

  it('does not wait for a frame that ignores its abort, and drops its late answer', async () => {
    const session = startSession();
    const stuck = gate();
    session.service.handle = async () => {
      await stuck.promise;
      return reply('"late"');
    };
    session.input.end('1\n');
    await session.clock.advance(drainMs + abortGraceMs);
    expect(session.isFinished()).toBe(true);
    stuck.open();
    expect(await session.lines()).toEqual([]);
  });
});

describe('shutdown', () => {
  const shutdown = '{"id":9,"method":"shutdown"}\n';
  const handle = (text: string) => reply(text, { isShutdown: text.includes('"shutdown"') });

  it('nothing received afterwards is started, in the same read or a later one', async () => {
    const session = startSession();
    session.service.handle = handle;
    session.input.write(`${shutdown}"after"\n`);
    await session.server.finished;
    session.input.write('"later"\n');
    expect(await session.lines()).toEqual([shutdown.trim()]);
    expect(session.service.calls).toHaveLength(1);
  });

  it('is answered last, after the frames that were running', async () => {
    const session = startSession();
    const slow = gate();
    session.service.handle = async (text) => {
      if (text === '"slow"') await slow.promise;
      return handle(text);
    };
    session.input.write(`"slow"\n${shutdown}`);
    expect(await session.lines()).toEqual([]);
    slow.open();
    await session.server.finished;
    expect(await session.lines()).toEqual(['"slow"', shutdown.trim()]);
  });

  it('waits no longer than drainMs for them, and they get their last word before it', async () => {
    const session = startSession();
    session.service.handle = (text, { signal }) =>
      text === '"slow"'
        ? new Promise((resolve) => {
            signal.addEventListener('abort', () => resolve(reply('"cancelled"')));
          })
        : handle(text);
    session.input.write(`"slow"\n${shutdown}`);
    await session.clock.advance(drainMs);
    expect(await session.lines()).toEqual(['"cancelled"', shutdown.trim()]);
    expect(session.isFinished()).toBe(true);
  });

  it('as a member answers its whole array, and lines behind it are not started meanwhile', async () => {
    const session = startSession();
    const slow = gate();
    session.service.handle = async () => {
      await slow.promise;
      return reply('["array"]', { isShutdown: true });
    };
    session.input.write('[{"id":1,"method":"slow"},{"id":2,"method":"shutdown"}]\n"after"\n');
    await session.settle();
    expect(session.service.calls).toHaveLength(1);
    slow.open();
    await session.server.finished;
    expect(await session.lines()).toEqual(['["array"]']);
  });

  it('that turns out to be none lets the next lines go on', async () => {
    const session = startSession();
    session.service.handle = (text) => reply(text);
    session.input.write(`${shutdown}"after"\n`);
    expect(await session.lines()).toEqual([shutdown.trim(), '"after"']);
    expect(session.isFinished()).toBe(false);
  });

  it('without an answer still ends the session', async () => {
    const session = startSession();
    session.service.handle = () => reply(null, { isShutdown: true });
    session.input.write(shutdown);
    await session.server.finished;
    expect(await session.lines()).toEqual([]);
  });
});

describe('stop', () => {
  it('finishes within its bound although a frame runs and ignores its abort', async () => {
    const session = startSession();
    session.service.handle = () => new Promise(() => undefined);
    session.input.write('1\n');
    await session.settle();
    session.server.stop('SIGTERM');
    session.input.write('2\n');
    await session.clock.advance(maxStopMs + abortGraceMs);
    expect(session.isFinished()).toBe(true);
    expect(session.service.calls).toHaveLength(1);
  });

  it('lets a frame that is nearly done answer', async () => {
    const session = startSession();
    const slow = gate();
    session.service.handle = async (text) => {
      await slow.promise;
      return reply(text);
    };
    session.input.write('1\n');
    await session.settle();
    session.server.stop('SIGTERM');
    await session.clock.advance(maxStopMs - 1);
    slow.open();
    expect(await session.lines()).toEqual(['1']);
    expect(session.isFinished()).toBe(true);
  });

  it('finishes at once when idle, and a second one changes nothing', async () => {
    const session = startSession();
    session.server.stop('SIGTERM');
    session.server.stop('SIGINT');
    await session.server.finished;
  });

  it('never lengthens a drain that is nearly over', async () => {
    const session = startSession();
    session.service.handle = () => new Promise(() => undefined);
    session.input.end('1\n');
    await session.clock.advance(drainMs - 1);
    session.server.stop('SIGTERM');
    await session.clock.advance(1 + abortGraceMs);
    expect(session.isFinished()).toBe(true);
  });

  it('shortens a drain that is already running', async () => {
    const session = startSession();
    session.service.handle = () => new Promise(() => undefined);
    session.input.end('1\n');
    await session.settle();
    session.server.stop('SIGTERM');
    await session.clock.advance(maxStopMs + abortGraceMs);
    expect(session.isFinished()).toBe(true);
  });
});
