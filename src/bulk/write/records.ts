/** Owns the work form of the formats that cannot be appended to: records, one behind the other, read back in order. */
import { open } from 'node:fs/promises';
import type { RowId } from '../row.ts';
import { BulkFailure } from '../row.ts';
import type { EmbeddedChunk, OutputShape } from './format.ts';
import { pack, unpack, type Packed } from './packed.ts';

/** A row as it was recorded. */
export interface Recorded {
  readonly index: number;
  readonly id: RowId | null;
  /** The vector, the weights of the terms, or the rows of the matrix one behind the other. */
  readonly numbers: Packed;
  /** The terms; null unless sparse. */
  readonly indices: Int32Array | null;
}

/** Bytes read at a time. @unit bytes */
const readBytes = 4_194_304;
/** index, kind of the id, bytes of the id, terms, bytes of the numbers. */
const fixedBytes = 8 + 4 + 4 + 4 + 4;
const idKinds = ['none', 'string', 'number', 'bigint'] as const;
const padded = (bytes: number): number => (bytes + 3) & ~3;

/** What a chunk adds to the work file. */
export function encodeRecords({ chunk, vectors }: EmbeddedChunk, { output }: OutputShape): Buffer {
  return Buffer.concat(
    chunk.rows.map(({ index, id }, position) => {
      switch (vectors.kind) {
        case 'dense':
          return record(index, id, null, pack(vectors.vectors[position] ?? new Float32Array(), output));
        case 'sparse': {
          const { indices, values } = vectors.sparse[position] ?? {
            indices: new Int32Array(),
            values: new Float32Array(),
          };
          return record(index, id, indices, pack(values, null));
        }
        case 'multi':
          return record(index, id, null, packRows(vectors.matrices[position], output));
      }
    }),
  );
}

function packRows(
  matrix: { values: Float32Array; dimension: number } | undefined,
  output: OutputShape['output'],
): Buffer {
  const { values, dimension } = matrix ?? { values: new Float32Array(), dimension: 1 };
  if (output === null) return pack(values, null);
  const rows = Array.from({ length: values.length / dimension }, (_, row) => row * dimension);
  return Buffer.concat(rows.map((start) => pack(values.subarray(start, start + dimension), output)));
}

function record(index: number, id: RowId | null, indices: Int32Array | null, numbers: Buffer): Buffer {
  const idBytes = Buffer.from(id === null ? '' : String(id));
  const termBytes = (indices?.length ?? 0) * 4;
  const bytes = Buffer.alloc(fixedBytes + padded(idBytes.length) + termBytes + padded(numbers.length));
  bytes.writeDoubleLE(index, 0);
  bytes.writeUInt32LE(id === null ? 0 : idKinds.indexOf(typeof id as 'string'), 8);
  bytes.writeUInt32LE(idBytes.length, 12);
  bytes.writeUInt32LE(indices?.length ?? 0, 16);
  bytes.writeUInt32LE(numbers.length, 20);
  idBytes.copy(bytes, fixedBytes);
  const termStart = fixedBytes + padded(idBytes.length);
  if (indices !== null) Buffer.from(indices.buffer, indices.byteOffset, termBytes).copy(bytes, termStart);
  numbers.copy(bytes, termStart + termBytes);
  return bytes;
}

/** The records of a work file, in lists of those that were read together. */
export async function* readRecords(path: string, { kind, output }: OutputShape): AsyncGenerator<readonly Recorded[]> {
  const handle = await open(path, 'r');
  const numbersAs = kind === 'sparse' ? null : output;
  try {
    let rest = Buffer.alloc(0);
    for (;;) {
      const part = Buffer.allocUnsafeSlow(readBytes);
      const { bytesRead } = await handle.read(part, 0, readBytes);
      if (bytesRead === 0) break;
      const bytes = Buffer.concat([rest, part.subarray(0, bytesRead)]);
      const records: Recorded[] = [];
      let start = 0;
      for (let end = endOf(bytes, start); end !== null; end = endOf(bytes, start)) {
        records.push(parse(bytes.subarray(start, end), numbersAs));
        start = end;
      }
      rest = bytes.subarray(start);
      if (records.length > 0) yield records;
    }
    if (rest.length > 0) throw new BulkFailure(`${path}: ends in the middle of a record`);
  } finally {
    await handle.close();
  }
}

function endOf(bytes: Buffer, start: number): number | null {
  if (start + fixedBytes > bytes.length) return null;
  const [id, terms, numbers] = [12, 16, 20].map((place) => bytes.readUInt32LE(start + place)) as [
    number,
    number,
    number,
  ];
  const end = start + fixedBytes + padded(id) + terms * 4 + padded(numbers);
  return end > bytes.length ? null : end;
}

function parse(bytes: Buffer, output: OutputShape['output']): Recorded {
  const idText = bytes.subarray(fixedBytes, fixedBytes + bytes.readUInt32LE(12)).toString();
  const termStart = fixedBytes + padded(bytes.readUInt32LE(12));
  const terms = bytes.readUInt32LE(16);
  const numberStart = termStart + terms * 4;
  // Copied: typed arrays must begin at a multiple of their element size.
  const numbers = copyOf(bytes.subarray(numberStart, numberStart + bytes.readUInt32LE(20)));
  return {
    index: bytes.readDoubleLE(0),
    id: idOf(idText, idKinds[bytes.readUInt32LE(8)] ?? 'none'),
    numbers: unpack(numbers, output),
    indices: terms === 0 ? null : new Int32Array(copyOf(bytes.subarray(termStart, numberStart)).buffer, 0, terms),
  };
}

function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

function idOf(text: string, kind: (typeof idKinds)[number]): RowId | null {
  switch (kind) {
    case 'none':
      return null;
    case 'string':
      return text;
    case 'number':
      return Number(text);
    case 'bigint':
      return BigInt(text);
  }
}

/** Whether every id is a whole number, so that the column can be one of numbers. */
export async function hasWholeIds(path: string, shape: OutputShape): Promise<boolean> {
  if (!shape.hasIds) return false;
  let isWhole = true;
  for await (const records of readRecords(path, shape)) {
    isWhole &&= records.every(({ id }) =>
      typeof id === 'bigint' ? BigInt.asIntN(64, id) === id : Number.isSafeInteger(id),
    );
    if (!isWhole) break;
  }
  return isWhole;
}

/** Numbers that go into one group of rows; the libraries take about fifty bytes for each of them. */
const groupNumbers = 1_048_576;
/** Most rows of a group. */
const groupRows = 65_536;

/** The records in groups of about equal size, which depend on the records only. */
export async function* groupsOf(path: string, shape: OutputShape): AsyncGenerator<readonly Recorded[]> {
  let group: Recorded[] = [];
  let numbers = 0;
  for await (const records of readRecords(path, shape)) {
    for (const one of records) {
      group.push(one);
      numbers += one.numbers.length;
      if (numbers < groupNumbers && group.length < groupRows) continue;
      yield group;
      [group, numbers] = [[], 0];
    }
  }
  if (group.length > 0) yield group;
}
