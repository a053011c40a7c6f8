import { describe, expect, it } from 'vitest';
import { becauseOf } from '../../../src/client/reason.ts';

const coded = (message: string, code: string) => Object.assign(new Error(message), { code });

describe('the reason of an error', () => {
  it.each([
    [
      'the innermost cause',
      new TypeError('fetch failed', { cause: coded('self-signed certificate', 'DEPTH') }),
      'self-signed certificate, DEPTH',
    ],
    [
      'a code once',
      new TypeError('fetch failed', { cause: coded('connect ECONNREFUSED ::1:9', 'ECONNREFUSED') }),
      'connect ECONNREFUSED ::1:9',
    ],
    ['its own message where nothing is behind it', new TypeError('Failed to fetch'), 'Failed to fetch'],
    [
      'what came before a cause that says nothing',
      new TypeError('fetch failed', { cause: new Error('') }),
      'fetch failed',
    ],
    [
      'every address that was tried',
      new TypeError('fetch failed', {
        cause: new AggregateError([new Error('no ::1'), new Error('no 127.0.0.1')], ''),
      }),
      'no ::1; no 127.0.0.1',
    ],
    ['one line', new Error('SSL routines:\n  wrong version number\n'), 'SSL routines: wrong version number'],
  ])('is %s', (_, error, reason) => {
    expect(becauseOf(error)).toBe(` (${reason})`);
  });

  it('is bounded, and nothing where there is none', () => {
    const endless = new Error('round');
    endless.cause = endless;
    expect(becauseOf(endless)).toBe(' (round)');
    expect(becauseOf(new Error('x'.repeat(10_000))).length).toBeLessThan(210);
    expect(['text', undefined, null, {}].map(becauseOf)).toEqual(['', '', '', '']);
  });
});
