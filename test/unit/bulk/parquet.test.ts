import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { readParquet } from '../../../src/bulk/read/parquet.ts';
import type { ReadRow } from '../../../src/bulk/row.ts';
import { openPlace, type Place } from './fakes.ts';

let place: Place;
beforeEach(() => (place = openPlace()));
afterEach(() => {
  place.remove();
});

async function read(path: string, fromRow = 0, id: string | null = 'id'): Promise<ReadRow[]> {
  const rows: ReadRow[] = [];
  for await (const list of readParquet(path, fromRow, 'a.parquet', { text: 'text', id })) rows.push(...list);
  return rows;
}

/** Many pages in several row groups, with a dictionary where texts repeat. */
function write(texts: readonly (string | null)[]): string {
  const columnData = [
    { name: 'id', data: texts.map((_, row) => BigInt(row)), type: 'INT64' as const },
    { name: 'text', data: [...texts], type: 'STRING' as const },
  ];
  return place.write('a.parquet', Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 700, pageSize: 512 })));
}

describe('Parquet', () => {
  it('is read whole and in order, from any row, over pages and row groups', async () => {
    const texts = Array.from({ length: 2000 }, (_, row) => (row % 2 === 0 ? `text ${row % 5}` : `other text ${row}`));
    const path = write(texts);
    const rows = await read(path);
    expect(rows.map(({ text }) => text)).toEqual(texts);
    expect(rows.map(({ id }) => id)).toEqual(texts.map((_, row) => row));
    for (const fromRow of [1, 699, 700, 701, 1399, 1999, 2000]) {
      expect(await read(path, fromRow)).toEqual(rows.slice(fromRow));
    }
  });

  it('has bad rows where there is no text', async () => {
    const rows = await read(write(['a', null, 'b']), 0, null);
    expect(rows.map(({ text, reason, line }) => [text, reason, line])).toEqual([
      ['a', null, 1],
      [null, 'its field text is null, not a text', 2],
      ['b', null, 3],
    ]);
  });

  it('is refused by name where it is something else, or has no such column', async () => {
    await expect(read(place.write('b.parquet', 'nothing of the kind'))).rejects.toThrow(
      'a.parquet: is not a Parquet file',
    );
    const bytes = parquetWriteBuffer({ columnData: [{ name: 'body', data: ['a'], type: 'STRING' }] });
    await expect(read(place.write('c.parquet', Buffer.from(bytes)))).rejects.toThrow('has no column text; it has body');
  });
});
