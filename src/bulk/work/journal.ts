/** Owns the journal of a run: a line for each recorded chunk, with a check sum, of which a torn tail is known. */
import { crc32 } from 'node:zlib';
import type { BadRow, InputPosition } from '../row.ts';

/** What a run is known by: another one must not go on with it. */
export type Fingerprint = Readonly<Record<string, string>>;

/** A chunk that is in the work file. */
export interface ChunkEntry {
  readonly type: 'chunk';
  readonly number: number;
  /** Rows of the input up to its end, and those of them that have vectors. */
  readonly index: number;
  readonly rows: number;
  /** Length of the work file up to its end. @unit bytes */
  readonly endBytes: number;
  /** Check sum of what it added. */
  readonly sum: number;
  /** Check sum of its texts. */
  readonly digest: number;
  readonly after: InputPosition;
  readonly bad: readonly BadRow[];
}

/** The output is whole: all that is left is its name. */
export interface SealEntry {
  readonly type: 'seal';
  /** Which file it is until it has its name. */
  readonly from: 'work' | 'built';
  /** @unit bytes */
  readonly bytes: number;
  readonly index: number;
  readonly rows: number;
  readonly badRows: number;
}

interface StartEntry {
  readonly type: 'start';
  readonly fingerprint: Fingerprint;
  /** Length of the head of the work file. @unit bytes */
  readonly headBytes: number;
}

/** A line of a journal. */
export type Entry = StartEntry | ChunkEntry | SealEntry;

/** What a journal says. */
export interface Journal {
  readonly fingerprint: Fingerprint;
  readonly headBytes: number;
  readonly chunks: readonly ChunkEntry[];
  readonly seal: SealEntry | null;
  /** Length of what could be read. @unit bytes */
  readonly bytes: number;
  /** Length up to the end of the line of each chunk. @unit bytes */
  readonly endsBytes: readonly number[];
}

/** An entry as a line. */
export function journalLine(entry: Entry): Buffer {
  const text = JSON.stringify(entry);
  return Buffer.from(`${crc32(text).toString(16).padStart(8, '0')} ${text}\n`);
}

/** The whole lines that a journal begins with; null where there is not even a first one. */
export function readJournal(bytes: Buffer): Journal | null {
  let start = 0;
  const entries: { entry: Entry; end: number }[] = [];
  for (let end = bytes.indexOf(0x0a, start); end !== -1; end = bytes.indexOf(0x0a, start)) {
    const entry = parseLine(bytes.subarray(start, end).toString());
    if (entry === null) break;
    start = end + 1;
    entries.push({ entry, end: start });
  }
  const [first, ...others] = entries;
  if (first?.entry.type !== 'start') return null;
  const chunks: ChunkEntry[] = [];
  const endsBytes: number[] = [];
  let seal: SealEntry | null = null;
  let readBytes = first.end;
  for (const { entry, end } of others) {
    if (entry.type === 'chunk' && entry.number !== chunks.length) break;
    if (entry.type === 'chunk') {
      chunks.push(entry);
      endsBytes.push(end);
    }
    if (entry.type === 'seal') seal = entry;
    readBytes = end;
  }
  const { fingerprint, headBytes } = first.entry;
  return { fingerprint, headBytes, chunks, seal, bytes: readBytes, endsBytes };
}

function parseLine(line: string): Entry | null {
  const text = line.slice(9);
  if (line[8] !== ' ' || line.slice(0, 8) !== crc32(text).toString(16).padStart(8, '0')) return null;
  return JSON.parse(text) as Entry;
}
