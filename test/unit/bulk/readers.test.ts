import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { readCsv } from '../../../src/bulk/read/csv.ts';
import { readJsonLines } from '../../../src/bulk/read/json-lines.ts';
import { linesOf, maxLineBytes } from '../../../src/bulk/read/lines.ts';
import { readPlainText } from '../../../src/bulk/read/plain-text.ts';
import { findInputs } from '../../../src/bulk/read/inputs.ts';
import type { ReadRow } from '../../../src/bulk/row.ts';
import { openPlace, type Place } from './fakes.ts';

const start = { offset: 0, line: 0 };
const fields = { text: 'text', id: null };

async function* parts(bytes: Buffer, size = 7): AsyncGenerator<Buffer> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

async function all<T>(lists: AsyncIterable<readonly T[]>): Promise<T[]> {
  const found: T[] = [];
  for await (const list of lists) found.push(...list);
  return found;
}

const texts = (rows: readonly ReadRow[]): (string | null)[] => rows.map(({ text }) => text);
const reasons = (rows: readonly ReadRow[]): (string | null)[] => rows.map(({ reason }) => reason);
const plain = (content: string | Buffer) => all(readPlainText(parts(Buffer.from(content)), start, 'a.txt'));
const jsonl = (content: string | Buffer, ids = fields as { text: string; id: string | null }) =>
  all(readJsonLines(parts(Buffer.from(content)), start, 'a.jsonl', ids));
const csvFrom = (bytes: Buffer, from = start, names = fields as { text: string; id: string | null }) =>
  all(readCsv((offset) => parts(bytes.subarray(offset)), from, 'a.csv', { delimiter: ',', fields: names }));

describe('lines', () => {
  it('end with LF or CR LF, the last one also without; a byte order mark is no part of the first', async () => {
    expect(texts(await plain('\ufeffone\r\ntwo\nthree'))).toEqual(['one', 'two', 'three']);
    expect(texts(await plain('one\n'))).toEqual(['one']);
    expect(texts(await plain(''))).toEqual([]);
    expect(texts(await plain('\ufeff'))).toEqual([]);
  });

  it('keep an empty line, a lone CR and a NUL byte of plain text as they are', async () => {
    expect(texts(await plain('one\n\nt\0wo\rx\n\n'))).toEqual(['one', '', 't\0wo\rx', '']);
  });

  it('that are not UTF-8 are bad, alone', async () => {
    const rows = await plain(Buffer.concat([Buffer.from('a\n'), Buffer.from([0xff, 0xc0, 0x0a]), Buffer.from('b')]));
    expect(texts(rows)).toEqual(['a', null, 'b']);
    expect(rows[1]).toMatchObject({ line: 2, reason: 'is not UTF-8' });
  });

  it('of UTF-16 are refused by that name', async () => {
    await expect(plain(Buffer.from('\ufeffone\n', 'utf16le'))).rejects.toThrow('a.txt: is UTF-16');
  });

  it('that are too long are bad, alone, and take no memory', async () => {
    const bytes = Buffer.from(`a\n${'x'.repeat(50)}\nb\n${'y'.repeat(50)}`);
    const lines = await all(linesOf(parts(bytes), start, 'a', 10));
    expect(lines.map((line) => line.bytes?.toString() ?? null)).toEqual(['a', null, 'b', null]);
    expect(lines.at(-1)?.next).toEqual({ offset: bytes.length, line: 4 });
    expect(maxLineBytes).toBe(2 ** 24);
  });

  it('can be read on from behind any line, wherever the parts are cut', async () => {
    const line = fc.string({ maxLength: 6 }).map((text) => text.replaceAll('\n', '').replaceAll('\r', ''));
    const ended = fc.tuple(line, fc.constantFrom('\n', '\r\n')).map(([text, end]) => text + end);
    await fc.assert(
      fc.asyncProperty(
        fc.array(ended, { maxLength: 8 }),
        line,
        fc.integer({ min: 1, max: 9 }),
        async (lines, last, size) => {
          const bytes = Buffer.from(lines.join('') + last);
          const whole = await all(readPlainText(parts(bytes, size), start, 'a'));
          for (const [position, { next }] of whole.entries()) {
            const offset = next?.offset ?? 0;
            const rest = await all(readPlainText(parts(bytes.subarray(offset), size), next ?? start, 'a'));
            expect(rest).toEqual(whole.slice(position + 1));
          }
        },
      ),
    );
  });
});

describe('JSON lines', () => {
  it('are objects; lines of blanks are no rows, but count as lines', async () => {
    const rows = await jsonl('{"text":"a","id":1}\n\n \n{"text":"b"}\n');
    expect(rows.map(({ text, line }) => [text, line])).toEqual([
      ['a', 1],
      ['b', 4],
    ]);
  });

  it('without a text are bad with the reason, and without a word of what they hold', async () => {
    const rows = await jsonl(
      '{"secret\n["text"]\n"text"\n{"body":1}\n{"text":null}\n{"text":5}\n{"text":["a"]}\n{"text":"\0"}\n',
    );
    expect(reasons(rows)).toEqual([
      'is not valid JSON',
      'is not a JSON object',
      'is not a JSON object',
      'has no field text',
      'its field text is null, not a text',
      'its field text is a number, not a text',
      'its field text is a list, not a text',
      'is not valid JSON',
    ]);
  });

  it('take no text from what every object inherits', async () => {
    expect(reasons(await jsonl('{}\n', { text: 'toString', id: null }))).toEqual(['has no field toString']);
  });

  it('have ids that are texts or numbers, and refuse numbers that no reader holds exactly', async () => {
    const rows = await jsonl(
      '{"text":"a","id":"x"}\n{"text":"b","id":7}\n{"text":"c","id":9007199254740993}\n{"text":"d"}\n',
      {
        text: 'text',
        id: 'id',
      },
    );
    expect(rows.map(({ id }) => id)).toEqual(['x', 7, null, null]);
    expect(reasons(rows).slice(2)).toEqual([
      'its field id is a number beyond 2^53, which cannot be read exactly: write it as text',
      'has no field id',
    ]);
  });
});

describe('CSV', () => {
  it('has the names of its columns first; quotes hold commas, line ends and quotes', async () => {
    const rows = await csvFrom(Buffer.from('\ufeffid,text\r\n1,"a, ""b""\nc"\r\n2,d\r\n\r\n3,e'), start, {
      text: 'text',
      id: 'id',
    });
    expect(rows.map(({ text, id, line }) => [text, id, line])).toEqual([
      ['a, "b"\nc', '1', 3],
      ['d', '2', 4],
      ['e', '3', 6],
    ]);
  });

  it('without such a column is refused with the names that it has', async () => {
    await expect(csvFrom(Buffer.from('id,body\n1,a\n'))).rejects.toThrow('a.csv: has no column text; it has id, body');
  });

  it('is refused where several columns have the name that is read, and only there', async () => {
    await expect(csvFrom(Buffer.from('text,text\n1,a\n'))).rejects.toThrow('a.csv: has several columns text');
    expect(texts(await csvFrom(Buffer.from('id,text,id\n1,a,2\n')))).toEqual(['a']);
    const names = { text: 'text', id: 'id' };
    await expect(csvFrom(Buffer.from('id,text,id\n1,a,2\n'), start, names)).rejects.toThrow('several columns id');
  });

  it('takes quotes inside a value as they are', async () => {
    expect(texts(await csvFrom(Buffer.from('id,text\n1,5" pipe\n2,"a"b\n3,c\n')))).toEqual(['5" pipe', '"a"b', 'c']);
  });

  it('with a quote that is never closed ends there, since no row behind it can be told from its text', async () => {
    await expect(csvFrom(Buffer.from('id,text\n1,a\n2,"b\n3,c\n'))).rejects.toThrow(
      'a.csv: a quote that opens in line',
    );
  });

  it('has bad records where fields are missing or bytes are no text', async () => {
    const bytes = Buffer.concat([Buffer.from('id,text\n1\n3,c\n4,'), Buffer.from([0xff]), Buffer.from('\n5,d\n')]);
    const rows = await csvFrom(bytes);
    expect(texts(rows).filter((text) => text !== null)).toEqual(['c', 'd']);
    expect(reasons(rows).filter((reason) => reason !== null)).toEqual([
      'has 1 fields, the first line has 2',
      'is not UTF-8',
    ]);
  });

  it('can be read on from behind any record, wherever the parts are cut', async () => {
    const value = fc
      .array(fc.constantFrom('a', 'é', '"', ',', '\n', '\r\n', ' '), { maxLength: 5 })
      .map((list) => list.join(''));
    const record = fc
      .tuple(value, fc.constantFrom('\n', '\r\n'))
      .map(([text, end]) => `1,"${text.replaceAll('"', '""')}"${end}`);
    await fc.assert(
      fc.asyncProperty(fc.array(record, { maxLength: 6 }), fc.integer({ min: 1, max: 9 }), async (records, size) => {
        const bytes = Buffer.from(`id,text\n${records.join('')}`);
        const read = (from: { offset: number; line: number }) =>
          all(readCsv((offset) => parts(bytes.subarray(offset), size), from, 'a', { delimiter: ',', fields }));
        const whole = await read(start);
        expect(whole).toHaveLength(records.length);
        for (const [position, { next }] of whole.entries()) {
          if (next !== null) expect(await read(next)).toEqual(whole.slice(position + 1));
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('inputs', () => {
  let place: Place;
  beforeEach(() => (place = openPlace()));
  afterEach(() => {
    place.remove();
  });

  it('of a folder are the files of known kinds, sorted, without hidden ones', async () => {
    for (const name of ['b.jsonl', 'a.txt', '.c.txt', 'notes.md']) place.write(name, '');
    expect((await findInputs(place.folder, null)).map(({ name, kind }) => [name, kind])).toEqual([
      [place.path('a.txt'), 'text'],
      [place.path('b.jsonl'), 'jsonl'],
    ]);
  });

  it('that cannot be read are refused by name', async () => {
    await expect(findInputs(place.path('none'), null)).rejects.toThrow('there is no such file');
    await expect(findInputs(place.write('x.doc', ''), null)).rejects.toThrow('--format');
    await expect(findInputs('-', 'parquet')).rejects.toThrow('stdin');
  });
});
