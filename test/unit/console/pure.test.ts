import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkBatch, pairReplies } from '../../../console/src/batch-text.ts';
import { curlOf, shellQuote } from '../../../console/src/curl.ts';
import { bytesText, linesOf, niceCeiling, rowNumbers, shortNumber } from '../../../console/src/lines.ts';
import { tokensOfRows } from '../../../console/src/row-tokens.ts';
import { cosine, cosines, maxSim } from '../../../console/src/similarity.ts';
import { queryUsageText, usageText } from '../../../console/src/usage.ts';

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

  it('gives a long body below the command, since a word of one has a greatest length', () => {
    const body = JSON.stringify({ text: `it's "$HOME" \`id\` \\n `.repeat(10_000) });
    const command = curlOf({ url: 'http://127.0.0.1:8000/rcp/ping', body, hasKey: false });
    const sent = execFileSync('bash', ['-s'], {
      input: `curl() { cat; }\n${command}\nprintf end`,
      encoding: 'utf8',
      maxBuffer: 1e7,
    });
    expect(sent).toBe(`${body}\nend`);
    expect(curlOf({ url: 'http://a', body: '"short"', hasKey: false })).toContain(`-d '"short"'`);
  });

  it('measures a body as the bytes that it is sent as', () => {
    const command = curlOf({ url: 'http://a', body: JSON.stringify('é'.repeat(60_000)), hasKey: false });
    expect(command).toContain('--data-binary @-');
  });

  it('shows no sign that turns the direction of what follows, and sends the same text all the same', () => {
    const text = 'a\u202eb\\\u2067c\u061c';
    const command = curlOf({ url: 'http://a', body: JSON.stringify(text), hasKey: false });
    expect(command).toContain(String.raw`"a\u202eb\\\u2067c\u061c"`);
    expect(JSON.parse(/-d '(.*)'$/.exec(command)?.[1] ?? '')).toBe(text);
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

  it('numbers rows from 1', () => {
    expect(rowNumbers(2)).toEqual(['row 1', 'row 2']);
  });

  it('says how many texts were cut, and names a query that was', () => {
    const usage = { inputTokens: 3, truncated: [], latencyMs: 5, device: 'cpu:0' };
    expect(usageText(usage)).toBe('3 tokens in 5 ms on cpu:0.');
    expect(usageText({ ...usage, truncated: [0, 4] }, 'passages')).toMatch(/ 2 of the passages were cut\.$/);
    expect(queryUsageText({ ...usage, latencyMs: 9 }, usage, 'documents')).toBe('6 tokens in 9 ms on cpu:0.');
    expect(
      queryUsageText({ ...usage, truncated: [0], device: 'cuda:0' }, { ...usage, truncated: [1] }, 'documents'),
    ).toBe('6 tokens in 5 ms on cuda:0 and cpu:0. 1 of the documents was cut. The query was cut.');
  });
});

describe('the rows of a text', () => {
  const tokens = ['[CLS]', 'a', '.', '[SEP]'].map((text, id) => ({ id, text }));
  const plain = { skippedIds: [], keepsFirstRow: true };
  const labelsOf = (rules: Parameters<typeof tokensOfRows>[1], rows: number, of = tokens) =>
    tokensOfRows(of, rules, rows, (id) => `<${id}>`)?.map(({ text }) => text) ?? null;

  it('are its tokens without those that are left out', () => {
    expect(labelsOf(plain, 4)).toEqual(['[CLS]', 'a', '.', '[SEP]']);
    expect(labelsOf({ ...plain, skippedIds: [2] }, 3)).toEqual(['[CLS]', 'a', '[SEP]']);
    expect(labelsOf({ ...plain, keepsFirstRow: false }, 3)).toEqual(['a', '.', '[SEP]']);
    expect(labelsOf({ ...plain, skippedIds: [0, 1, 2, 3] }, 4)).toEqual(['[CLS]', 'a', '.', '[SEP]']);
  });

  it('have the marker behind the first token, and what fills them at the end', () => {
    const rules = { ...plain, markerId: 8, fillId: 9, skippedIds: [2] };
    expect(labelsOf(rules, 4)).toEqual(['[CLS]', '<8>', 'a', '[SEP]']);
    expect(labelsOf(rules, 6)).toEqual(['[CLS]', '<8>', 'a', '[SEP]', '<9>', '<9>']);
    expect(labelsOf({ ...plain, markerId: 8 }, 1, [])).toEqual(['<8>']);
  });

  it('have no words where they and the tokens do not add up', () => {
    expect(labelsOf(plain, 3)).toBeNull();
    expect(labelsOf(plain, 5)).toBeNull();
    expect(labelsOf({ ...plain, markerId: 8, fillId: 9 }, 4)).toBeNull();
  });
});
