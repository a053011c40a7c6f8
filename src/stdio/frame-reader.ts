/** Owns cutting a byte stream into frames: one line each, ended by 0x0A only, never longer than the limit. */
import { maxIdSearchBytes, recoverId } from '../rpc/recover-id.ts';

/** One line of the stream, or why it never became text. */
export type Frame =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'notUtf8' }
  | { readonly kind: 'tooLarge'; readonly rawId: string | null };

/** Turns bytes into frames; holds at most one unfinished line. */
export interface FrameReader {
  /** The frames that these bytes complete, in order. */
  push(chunk: Buffer): Frame[];
  /** The last line when it had no line end. */
  end(): Frame[];
}

const lineFeed = 0x0a;
/** Storage above this size is given back once its line is done. @unit bytes */
const maxIdleStorageBytes = 65_536;
const isBlank = (text: string) => !/[^ \t\r]/.test(text);

function decodeLine(line: Buffer): Frame | null {
  try {
    // Non-streaming decoding also takes one byte order mark off the start of every line.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(line);
    return isBlank(text) ? null : { kind: 'text', text };
  } catch {
    return { kind: 'notUtf8' };
  }
}

/**
 * A reader that skips blank lines, strips one byte order mark per line, and answers a line over `maxFrameBytes` (line
 * end not counted) with one `tooLarge` frame as soon as the limit is passed, dropping the rest of the line unread.
 */
export function createFrameReader(maxFrameBytes: number): FrameReader {
  let storage = Buffer.alloc(0);
  let pendingBytes = 0;
  let isDiscarding = false;

  const append = (bytes: Buffer) => {
    const neededBytes = pendingBytes + bytes.length;
    if (neededBytes > storage.length) {
      const grown = Buffer.allocUnsafe(Math.min(maxFrameBytes, Math.max(neededBytes, storage.length * 2)));
      storage.copy(grown, 0, 0, pendingBytes);
      storage = grown;
    }
    bytes.copy(storage, pendingBytes);
    pendingBytes = neededBytes;
  };

  const reset = () => {
    pendingBytes = 0;
    if (storage.length > maxIdleStorageBytes) storage = Buffer.alloc(0);
  };

  /** The same first bytes however the line was cut into chunks, so that the recovered id never depends on timing. */
  const headWith = (bytes: Buffer) =>
    Buffer.concat([
      storage.subarray(0, Math.min(pendingBytes, maxIdSearchBytes)),
      bytes.subarray(0, maxIdSearchBytes),
    ]).subarray(0, Math.min(maxIdSearchBytes, maxFrameBytes));

  const take = (bytes: Buffer, isLineEnd: boolean): Frame | null => {
    if (isDiscarding) {
      isDiscarding = !isLineEnd;
      return null;
    }
    if (pendingBytes + bytes.length > maxFrameBytes) {
      const rawId = recoverId(headWith(bytes));
      reset();
      isDiscarding = !isLineEnd;
      return { kind: 'tooLarge', rawId };
    }
    if (isLineEnd && pendingBytes === 0) return decodeLine(bytes);
    append(bytes);
    if (!isLineEnd) return null;
    const frame = decodeLine(storage.subarray(0, pendingBytes));
    reset();
    return frame;
  };

  return {
    push(chunk) {
      const frames: Frame[] = [];
      let start = 0;
      while (start < chunk.length) {
        const found = chunk.indexOf(lineFeed, start);
        const end = found === -1 ? chunk.length : found;
        const frame = take(chunk.subarray(start, end), found !== -1);
        if (frame !== null) frames.push(frame);
        start = end + 1;
      }
      return frames;
    },
    end() {
      const frame = take(Buffer.alloc(0), true);
      return frame === null ? [] : [frame];
    },
  };
}
