import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkBatch, pairReplies } from '../../../console/src/batch-text.ts';
import { curlOf, shellQuote } from '../../../console/src/curl.ts';
import { bytesText, linesOf, niceCeiling, rowLabels, shortNumber } from '../../../console/src/lines.ts';
import { cosine, cosines, maxSim } from '../../../console/src/similarity.ts';

describe('similarity', () => {
  it('of vectors is 1 for one direction, 0 for a right angle, -1 for the opposite, whatever their lengths', () => {
    expect(cosine([1, 2], [2, 4])).toBeCloseTo(1);
    expect(cosine([1, 0], [0, 3])).toBe(0);
    expect(cosine([1, 1], [-5, -5])).toBeCloseTo(-1);
    expect(cosine([0, 0], [1, 1])).toBe(0);
  });

  it('of each pair is symmetric', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 })),
        (vectors) => {
          const all = cosines(vectors);
          for (const [row, line] of all.entries()) {
            for (const [column, value] of line.entries()) expect(value).toBeCloseTo(all[column]?.[row] ?? NaN);
          }
        },
      ),
    );
  });

  it('of rows adds up what each row of the query finds best', () => {
    const query = [
      [1, 0],
      [0, 1],
    ];
    const document = [
      [0.5, 0.5],
      [1, 0],
      [1, 0],
    ];
    expect(maxSim(query, document)).toEqual({
      products: [
        [0.5, 1, 1],
        [0.5, 0, 0],
      ],
      best: [1, 0],
      score: 1.5,
    });
  });
});

describe('the curl command', () => {
  it('sends the body, and names the variable that holds the key, never the key', () => {
    expect(curlOf({ url: 'http://127.0.0.1:8000/rcp/ping', body: '{"a":1}', hasKey: true })).toBe(
      `curl -s http://127.0.0.1:8000/rcp/ping -H "Authorization: Bearer $TRIVEC_API_KEY" -H 'Content-Type: application/json' -d '{"a":1}'`,
    );
    expect(curlOf({ url: 'http://[::1]:8000/metrics', body: null, hasKey: false })).toBe(
      `curl -s 'http://[::1]:8000/metrics'`,
    );
  });

  it('holds any text as one word of a shell', () => {
    const words = [`it's`, '$(date)', '`date`', 'a\nb', '"', '\\', '!x', 'ü'];
    const printed = execFileSync('sh', ['-c', `printf '%s\\0' ${words.map(shellQuote).join(' ')}`], {
      encoding: 'utf8',
    });
    expect(printed.split('\0').slice(0, -1)).toEqual(words);
  });
});

describe('a batch', () => {
  it('is told before it is sent where it is no JSON, with line and column where the parser knows them', () => {
    expect(checkBatch('[\n  {"a":1},\n  oops\n]')).toEqual({ problem: expect.stringContaining('Not valid JSON') });
    expect(checkBatch('[1,]')).toHaveProperty('problem');
    expect(checkBatch('  ')).toHaveProperty('problem');
    expect(checkBatch('"text"')).toHaveProperty('problem');
  });

  it('may be one call alone', () => {
    expect(checkBatch('{"id":1}')).toEqual({ members: [{ id: 1 }] });
    expect(checkBatch('[1,2]')).toEqual({ members: [1, 2] });
  });

  it('has each reply beside the call of its id, and no call beside a reply without one', () => {
    const members = [{ id: 1, method: 'ping' }, { method: 'notifications/cancel' }, { id: '1', method: 'info' }, 7];
    const replies = [
      { id: '1', result: {} },
      { id: 1, error: {} },
      { id: null, error: {} },
    ];
    expect(pairReplies(members, replies).map(({ method, isError }) => [method, isError])).toEqual([
      ['info', false],
      ['ping', true],
      [null, true],
    ]);
  });
});

describe('what is shown', () => {
  it('has one line for each that is not empty', () => {
    expect(linesOf(' a \n\n\tb\r\n')).toEqual(['a', 'b']);
  });

  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1500, '1.5 KB'],
    [151_400_000, '151 MB'],
  ])('%s bytes are %s', (bytes, text) => {
    expect(bytesText(bytes)).toBe(text);
  });

  it.each([
    [0, '0'],
    [0.256, '0.26'],
    [12.34, '12.3'],
    [456.7, '457'],
    [12_340, '12.3k'],
  ])('%s is %s', (value, text) => {
    expect(shortNumber(value)).toBe(text);
  });

  it('has axes that end at 1, 2 or 5 times a power of ten, at or above the greatest value', () => {
    expect([0, 0.3, 1, 1.1, 4, 6, 51].map(niceCeiling)).toEqual([1, 0.5, 1, 2, 5, 10, 100]);
  });

  it('names rows by their tokens only where there is one token for each', () => {
    expect(rowLabels(2, ['a', 'b'])).toEqual(['a', 'b']);
    expect(rowLabels(2, ['a', 'b', 'c'])).toEqual(['row 1', 'row 2']);
    expect(rowLabels(1, undefined)).toEqual(['row 1']);
  });
});
