/** Owns reading Parquet files page by page: a row group may be larger than the memory. */
import { open, type FileHandle } from 'node:fs/promises';
import type { AsyncBuffer, ColumnMetaData, FileMetaData } from 'hyparquet';
import type { ReadRow } from '../row.ts';
import { BulkFailure } from '../row.ts';
import { badRow, rowOfFields, type FieldNames } from './fields.ts';
import { notUtf8Reason, textOf } from './lines.ts';

/** Bytes read to find the head of a page. @unit bytes */
const headBytes = 65_536;
/** Largest page that is read; writers make them of about a megabyte. @unit bytes */
const maxPageBytes = 268_435_456;
/** Rows handed on at a time. */
const rowsPerStep = 1024;

/** Stands for bytes that are no text. */
const notText = Symbol('not UTF-8');

/**
 * The rows of a file from a row on.
 * @throws BulkFailure where it is no Parquet file, or has no such columns
 */
export async function* readParquet(
  path: string,
  fromRow: number,
  name: string,
  fields: FieldNames,
): AsyncGenerator<readonly ReadRow[]> {
  const handle = await open(path, 'r');
  try {
    const { size } = await handle.stat();
    const file = bufferOf(handle, size);
    const metadata = await metadataOf(file, name);
    let groupStart = 0;
    for (const group of metadata.row_groups) {
      const rows = Number(group.num_rows);
      if (groupStart + rows > fromRow) {
        const skipped = Math.max(0, fromRow - groupStart);
        const columns = group.columns.map(({ meta_data: meta }) => meta);
        const openColumn = (field: string) => columnOf({ file, metadata, name, columns, field, rows, skipped });
        const texts = await openColumn(fields.text);
        const ids = fields.id === null ? null : await openColumn(fields.id);
        for (let row = groupStart + skipped; row < groupStart + rows;) {
          const count = Math.min(rowsPerStep, groupStart + rows - row);
          const text = await texts.take(count);
          const id = ids === null ? null : await ids.take(count);
          const first = row;
          yield text.map((value, index) => rowAt(first + index, fields, value, id?.[index]));
          row += count;
        }
      }
      groupStart += rows;
    }
  } finally {
    await handle.close();
  }
}

function rowAt(row: number, fields: FieldNames, text: unknown, id: unknown): ReadRow {
  const place = { line: row + 1, next: { offset: row + 1, line: row + 1 } };
  if (text === notText || id === notText) return badRow(place, notUtf8Reason);
  const own = typeof id === 'bigint' && Number.isSafeInteger(Number(id)) ? Number(id) : id;
  return rowOfFields(place, fields, text, own);
}

function bufferOf(handle: FileHandle, size: number): AsyncBuffer {
  return {
    byteLength: size,
    async slice(start, end = size) {
      const bytes = Buffer.allocUnsafeSlow(Math.max(0, Math.min(end, size) - start));
      let done = 0;
      while (done < bytes.length) {
        const { bytesRead } = await handle.read(bytes, done, bytes.length - done, start + done);
        if (bytesRead === 0) throw new BulkFailure('a Parquet file became shorter while it was read');
        done += bytesRead;
      }
      return bytes.buffer;
    },
  };
}

async function metadataOf(file: AsyncBuffer, name: string): Promise<FileMetaData> {
  const { parquetMetadataAsync } = await import('hyparquet');
  try {
    return await parquetMetadataAsync(file);
  } catch {
    throw new BulkFailure(`${name}: is not a Parquet file`);
  }
}

interface ColumnSource {
  readonly file: AsyncBuffer;
  readonly metadata: FileMetaData;
  readonly name: string;
  readonly columns: readonly (ColumnMetaData | undefined)[];
  readonly field: string;
  readonly rows: number;
  readonly skipped: number;
}

/** Values of a column, in order. */
interface Column {
  take(count: number): Promise<unknown[]>;
}

async function columnOf({ file, metadata, name, columns, field, rows, skipped }: ColumnSource): Promise<Column> {
  const { parquetSchema } = await import('hyparquet');
  const { parquetHeader, readPage } = await import('hyparquet/src/column.js');
  const { convert, DEFAULT_PARSERS } = await import('hyparquet/src/convert.js');
  const { compressors } = await import('hyparquet-compressors');
  const tree = parquetSchema(metadata);
  const node = tree.children.find(({ element }) => element.name === field);
  const meta = columns.find((column) => column?.path_in_schema[0] === field);
  if (node === undefined || meta === undefined) {
    const known = tree.children.map(({ element }) => element.name).join(', ');
    throw new BulkFailure(`${name}: has no column ${field}; it has ${known}`);
  }
  if (node.children.length > 0 || node.element.repetition_type === 'REPEATED') {
    throw new BulkFailure(`${name}: its column ${field} holds lists or groups, not one value a row`);
  }
  const { type, codec } = meta;
  const stringFromBytes = (bytes?: Uint8Array) => (bytes === undefined ? undefined : (textOf(bytes) ?? notText));
  const decoder = {
    pathInSchema: meta.path_in_schema,
    type,
    codec,
    element: node.element,
    schemaPath: [tree, node],
    compressors,
    parsers: { ...DEFAULT_PARSERS, stringFromBytes },
  } as unknown as Parameters<typeof readPage>[2];
  const start = Number(meta.dictionary_page_offset || meta.data_page_offset);
  let offset = Math.min(start, Number(meta.data_page_offset));
  let dictionary: Parameters<typeof readPage>[3];
  let left = skipped;
  let read = 0;
  let values: ArrayLike<unknown> = [];
  let used = 0;

  /** The values of the next page of data. */
  async function nextPage(): Promise<void> {
    for (;;) {
      if (read >= rows) throw new BulkFailure(`${name}: its column ${field} has fewer values than rows`);
      const head = {
        view: new DataView(await file.slice(offset, Math.min(offset + headBytes, file.byteLength))),
        offset: 0,
      };
      const header = parquetHeader(head);
      const bodyStart = offset + head.offset;
      offset = bodyStart + header.compressed_page_size;
      if (Math.max(header.compressed_page_size, header.uncompressed_page_size) > maxPageBytes) {
        throw new BulkFailure(`${name}: a page of column ${field} is larger than ${String(maxPageBytes)} bytes`);
      }
      const count = header.data_page_header?.num_values ?? header.data_page_header_v2?.num_values ?? 0;
      const isDictionary = header.type === 'DICTIONARY_PAGE';
      if (!isDictionary) {
        read += count;
        if (count <= left) {
          left -= count;
          continue;
        }
      }
      const body = { view: new DataView(await file.slice(bodyStart, offset)), offset: 0 };
      const { data } = readPage(body, header, decoder, dictionary, undefined, 0);
      if (data === undefined) throw new BulkFailure(`${name}: a page of column ${field} cannot be read`);
      if (isDictionary) {
        dictionary = convert(data, decoder);
        continue;
      }
      [values, used, left] = [data, left, 0];
      return;
    }
  }

  return {
    async take(count) {
      const taken: unknown[] = [];
      while (taken.length < count) {
        if (used === values.length) await nextPage();
        const end = Math.min(values.length, used + count - taken.length);
        for (; used < end; used += 1) taken.push(values[used]);
      }
      return taken;
    },
  };
}
