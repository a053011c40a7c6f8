/** Owns cutting bytes into lines, in memory that does not grow with the file. */
import { isUtf8 } from 'node:buffer';
import type { FilePosition } from '../row.ts';
import { BulkFailure } from '../row.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/** Longest line, or record of a CSV file. @unit bytes */
export const maxLineBytes = 16_777_216;

/** A line without its end. */
export interface Line {
  /** null where it is longer than `maxLineBytes`. */
  readonly bytes: Buffer | null;
  /** Counted from 1. */
  readonly number: number;
  readonly next: FilePosition;
}

/** The length of the byte order mark that a file begins with. @throws BulkFailure where it says UTF-16 */
export function markLength(start: Buffer, name: string): number {
  if ((start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff)) {
    throw new BulkFailure(`${name}: is UTF-16; only UTF-8 can be read`);
  }
  return start.subarray(0, 3).equals(byteOrderMark) ? 3 : 0;
}

/** Lists of lines, one for each part of the file; they end with LF or CR LF, the last one also without. */
export async function* linesOf(
  parts: AsyncIterable<Buffer>,
  from: FilePosition,
  name: string,
  limitBytes = maxLineBytes,
): AsyncGenerator<readonly Line[]> {
  let { offset, line } = from;
  let kept: Buffer[] = [];
  let keptBytes = 0;
  let isTooLong = false;
  let isStart = offset === 0;
  const finish = (rest: Buffer, endBytes: number): Line => {
    keptBytes += rest.length;
    offset += keptBytes + endBytes;
    line += 1;
    const next = { offset, line };
    const whole = isTooLong || keptBytes > limitBytes ? null : Buffer.concat([...kept, rest]);
    [kept, keptBytes, isTooLong] = [[], 0, false];
    return { bytes: whole === null ? null : withoutCarriageReturn(whole, endBytes), number: line, next };
  };
  for await (const part of startWhole(parts)) {
    const lines: Line[] = [];
    let start = 0;
    if (isStart) {
      start = markLength(part, name);
      offset += start;
      isStart = false;
    }
    for (let end = part.indexOf(lineFeed, start); end !== -1; end = part.indexOf(lineFeed, start)) {
      lines.push(finish(part.subarray(start, end), 1));
      start = end + 1;
    }
    const rest = part.subarray(start);
    keptBytes += rest.length;
    if (keptBytes > limitBytes) [kept, isTooLong] = [[], true];
    else if (rest.length > 0) kept.push(Buffer.from(rest));
    if (lines.length > 0) yield lines;
  }
  if (keptBytes > 0) yield [finish(Buffer.alloc(0), 0)];
}

const withoutCarriageReturn = (line: Buffer, endBytes: number): Buffer =>
  endBytes === 1 && line.at(-1) === carriageReturn ? line.subarray(0, -1) : line;

/** The same parts, the first one long enough to hold a byte order mark where the file is. */
export async function* startWhole(parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let start: Buffer | null = Buffer.alloc(0);
  for await (const part of parts) {
    if (start === null) {
      yield part;
      continue;
    }
    start = Buffer.concat([start, part]);
    if (start.length < byteOrderMark.length) continue;
    yield start;
    start = null;
  }
  if (start !== null && start.length > 0) yield start;
}

/** The text of bytes; null where they are not UTF-8. */
export const textOf = (bytes: Uint8Array): string | null =>
  isUtf8(bytes) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8') : null;

/** What is said of a line that is longer than may be. */
export const tooLongReason = `is longer than ${String(maxLineBytes)} bytes`;
/** What is said of bytes that are no text. */
export const notUtf8Reason = 'is not UTF-8';
