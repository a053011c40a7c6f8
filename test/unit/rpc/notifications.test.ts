import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { logLevels, readLogLevel } from '../../../src/rpc/log-level.ts';
import {
  createProgressReporter,
  maxProgressFrames,
  readProgressToken,
  sendLog,
} from '../../../src/rpc/notifications.ts';
import { Session } from '../../../src/rpc/session.ts';

const sessionWith = (logLevel: Session['logLevel']) => {
  const session = new Session({ isStateful: true, isInitialized: true });
  session.logLevel = logLevel;
  return session;
};

describe('a progress token', () => {
  it.each(['"t"', '""', '"\\u0031"', '0', '-7', '9007199254740993'])('%s is echoed as it was written', (raw) => {
    expect(readProgressToken(raw)).toBe(raw);
  });

  it.each([undefined, '1.5', '1e2', '1.0'])('%s is none', (raw) => {
    expect(readProgressToken(raw)).toBeNull();
  });
});

describe('progress', () => {
  const progressOf = (totalCount: number, done: readonly number[]) => {
    const frames: string[] = [];
    const report = createProgressReporter('"t"', 'embed', (frame) => frames.push(frame));
    for (const count of done) report?.(count, totalCount);
    return frames.map((frame) => (JSON.parse(frame) as { params: { progress: number } }).params.progress);
  };

  it('grows strictly up to 1, in at most a hundred frames', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), (totalCount) => {
        const progress = progressOf(
          totalCount,
          Array.from({ length: totalCount }, (_, at) => at + 1),
        );
        expect(progress.length).toBeLessThanOrEqual(maxProgressFrames);
        expect(progress.at(-1)).toBe(1);
        for (let at = 1; at < progress.length; at += 1) {
          expect(progress[at]).toBeGreaterThan(progress[at - 1] ?? Infinity);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('never goes back, whatever is reported', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 50 })), (done) => {
        const progress = progressOf(50, done);
        expect(progress).toEqual([...new Set(progress)].sort((a, b) => a - b));
        for (const each of progress) expect(each > 0 && each <= 1).toBe(true);
      }),
    );
  });

  it('is a notification with the raw token and the stage, and no partial result', () => {
    const frames: string[] = [];
    createProgressReporter('9007199254740993', 'embed/multi', (frame) => frames.push(frame))?.(1, 4);
    expect(frames).toEqual([
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9007199254740993,"progress":0.25,"stage":"embed/multi"}}',
    ]);
  });

  it('is not reported without a token, or where nothing can carry it', () => {
    expect(createProgressReporter(null, 'embed', () => undefined)).toBeNull();
    expect(createProgressReporter('"t"', 'embed', null)).toBeNull();
  });
});

describe('log entries', () => {
  const sent = (session: Session, callLevel: ReturnType<typeof readLogLevel>, level: (typeof logLevels)[number]) => {
    const frames: string[] = [];
    sendLog(session, callLevel, (frame) => frames.push(frame), { level, message: 'm', data: { a: 1 } });
    return frames;
  };

  it('are never sent to a client that did not ask', () => {
    for (const level of logLevels) expect(sent(sessionWith(null), null, level)).toEqual([]);
  });

  it('are sent from the level asked for upwards', () => {
    for (const [least, asked] of logLevels.entries()) {
      for (const [at, level] of logLevels.entries()) {
        expect(sent(sessionWith(asked), null, level)).toHaveLength(Number(at >= least));
        expect(sent(sessionWith(null), asked, level)).toHaveLength(Number(at >= least));
      }
    }
  });

  it('follow the level of the call before that of the session', () => {
    expect(sent(sessionWith('debug'), 'error', 'info')).toEqual([]);
  });

  it('have a level, a message and an object of data', () => {
    expect(sent(sessionWith('info'), null, 'warning').map((frame) => JSON.parse(frame) as unknown)).toEqual([
      { jsonrpc: '2.0', method: 'notifications/log', params: { level: 'warning', message: 'm', data: { a: 1 } } },
    ]);
  });

  it.each(['WARNING', 'fatal', 5, null, undefined, {}])('with the odd level %j are as if nobody had asked', (level) => {
    expect(readLogLevel(level)).toBeNull();
  });
});
