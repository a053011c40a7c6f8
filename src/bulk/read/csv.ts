/** Owns reading CSV and tab-separated files: the first record names the columns. */
import type { FilePosition, ReadRow } from '../row.ts';
import { BulkFailure } from '../row.ts';
import { badRow, rowOfFields, type FieldNames } from './fields.ts';
import { markLength, maxLineBytes, notUtf8Reason, startWhole, textOf } from './lines.ts';

/** A record, and the bytes that the parser had read behind it. */
interface Found {
  readonly record: readonly Buffer[];
  readonly endBytes: number;
}

/** Opens the bytes of a file from an offset on. */
export type OpenFrom = (offset: number) => AsyncIterable<Buffer>;

/** How a file is separated. */
export interface CsvOptions {
  readonly delimiter: string;
  readonly fields: FieldNames;
}

/**
 * The rows of a file from a place on; a line number is that of the line a record ends in.
 * @throws BulkFailure where the file has no such columns, or holds a record without end
 */
export async function* readCsv(
  open: OpenFrom,
  from: FilePosition,
  name: string,
  { delimiter, fields }: CsvOptions,
): AsyncGenerator<readonly ReadRow[]> {
  let columns: Columns | null = from.offset === 0 ? null : await columnsOf(open, name, { delimiter, fields });
  for await (const found of recordsOf(open(from.offset), from, name, delimiter)) {
    const rows: ReadRow[] = [];
    for (const one of found) {
      if (columns === null) columns = readColumns(one, name, fields);
      else rows.push(rowOf(one, columns, fields));
    }
    yield rows;
  }
}

interface Columns {
  readonly count: number;
  readonly text: number;
  readonly id: number | null;
}

interface Placed {
  readonly record: readonly Buffer[];
  readonly line: number;
  readonly next: FilePosition;
}

async function columnsOf(open: OpenFrom, name: string, options: CsvOptions): Promise<Columns> {
  for await (const [first] of recordsOf(open(0), { offset: 0, line: 0 }, name, options.delimiter)) {
    if (first !== undefined) return readColumns(first, name, options.fields);
  }
  throw new BulkFailure(`${name}: has no line with the names of the columns`);
}

function readColumns({ record }: Placed, name: string, fields: FieldNames): Columns {
  const names = record.map(textOf);
  const placeOf = (field: string): number => {
    const place = names.indexOf(field);
    if (names.includes(field, place + 1) && place !== -1) {
      throw new BulkFailure(`${name}: has several columns ${field}; nobody can tell which one is meant`);
    }
    if (place !== -1) return place;
    throw new BulkFailure(`${name}: has no column ${field}; it has ${names.join(', ')}`);
  };
  return { count: names.length, text: placeOf(fields.text), id: fields.id === null ? null : placeOf(fields.id) };
}

function rowOf({ record, line, next }: Placed, columns: Columns, fields: FieldNames): ReadRow {
  const place = { line, next };
  if (record.length !== columns.count) {
    return badRow(place, `has ${String(record.length)} fields, the first line has ${String(columns.count)}`);
  }
  const valueOf = (column: number): string | null => textOf(record[column] ?? Buffer.alloc(0));
  const text = valueOf(columns.text);
  const id = columns.id === null ? '' : valueOf(columns.id);
  if (text === null || id === null) return badRow(place, notUtf8Reason);
  return rowOfFields(place, fields, text, id);
}

async function* recordsOf(
  parts: AsyncIterable<Buffer>,
  from: FilePosition,
  name: string,
  delimiter: string,
): AsyncGenerator<readonly Placed[]> {
  const { Parser } = await import('csv-parse');
  let found: Found[] = [];
  const counter = new LineCounter(from.line);
  const parser = new Parser({
    // Values stay bytes: only the parser of this program judges whether they are text.
    encoding: null,
    delimiter,
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
    skip_empty_lines: true,
    // `5" pipe` is a text; who writes quotes for their own sake does not double them.
    relax_quotes: true,
    max_record_size: maxLineBytes,
    on_record: (record: readonly Buffer[], { bytes }: { readonly bytes: number }) => {
      found.push({ record, endBytes: bytes });
      return null;
    },
  } as unknown as ConstructorParameters<typeof Parser>[0]);
  const failed = new Promise<never>((_, reject) => {
    // Behind such a record nobody can tell rows apart: it cannot be left out.
    parser.once('error', () => {
      reject(new BulkFailure(`${name}: ${brokenReason(counter.line + 1)}`));
    });
  });
  failed.catch(() => undefined);
  parser.resume();
  let base = from.offset;
  let isStart = base === 0;
  const take = (): Placed[] => {
    const taken = found.map(({ record, endBytes }): Placed => {
      const { before, endsInside } = counter.upTo(endBytes);
      return { record, line: endsInside ? before + 1 : before, next: { offset: base + endBytes, line: before } };
    });
    found = [];
    return taken;
  };
  try {
    for await (const part of startWhole(parts)) {
      let bytes = part;
      if (isStart) {
        const mark = markLength(part, name);
        bytes = part.subarray(mark);
        base += mark;
        isStart = false;
      }
      counter.add(bytes);
      await Promise.race([
        failed,
        new Promise<void>((resolve) =>
          parser.write(bytes, () => {
            resolve();
          }),
        ),
      ]);
      if (found.length > 0) yield take();
    }
    await Promise.race([
      failed,
      new Promise<void>((resolve) =>
        parser.end(() => {
          resolve();
        }),
      ),
    ]);
    if (found.length > 0) yield take();
  } finally {
    parser.destroy();
  }
}

const brokenReason = (line: number): string =>
  `a quote that opens in line ${String(line)} or behind it is not closed within ${String(maxLineBytes)} bytes`;

/** Counts the lines before places that only move forward. */
class LineCounter {
  line: number;
  #seenBytes = 0;
  #ends: number[] = [];
  #used = 0;

  constructor(line: number) {
    this.line = line;
  }

  add(bytes: Buffer): void {
    this.#ends = this.#ends.slice(this.#used);
    this.#used = 0;
    for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, end + 1)) {
      this.#ends.push(this.#seenBytes + end + 1);
    }
    this.#seenBytes += bytes.length;
  }

  /** Lines that end at this place or before it, and whether the place is inside a line. */
  upTo(bytes: number): { readonly before: number; readonly endsInside: boolean } {
    let last = -1;
    for (; (this.#ends[this.#used] ?? Infinity) <= bytes; this.#used += 1) {
      this.line += 1;
      last = this.#ends[this.#used] ?? -1;
    }
    return { before: this.line, endsInside: last !== bytes };
  }
}
