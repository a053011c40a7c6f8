/** Owns finding lines in the output of a process. */

/** What is kept of a line that is longer than allowed. */
export interface LineEnds {
  readonly head: string;
  readonly tail: string;
}

/** Who is told of lines. */
export interface LineListener {
  readonly onLine: (line: string) => void;
  /** A line that is longer than allowed has come to its end. */
  readonly onLongLine: (ends: LineEnds) => void;
}

/** Collects pieces until a line is whole. */
export interface LineReader {
  /** Gives each line that ends in this piece. */
  read(chunk: Buffer): void;
}

const newline = 0x0a;
/** Kept of each end of a line that is longer than allowed. @unit bytes */
const endBytes = 256;

/** A reader of lines of so many bytes at most; lines end at byte 0x0A and nowhere else, and blank ones are none. */
export function createLineReader(maxBytes: number, { onLine, onLongLine }: LineListener): LineReader {
  let pieces: Buffer[] = [];
  let bytes = 0;
  let head: Buffer | null = null;

  const take = (piece: Buffer) => {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes <= maxBytes) return;
    head ??= Buffer.concat(pieces, Math.min(bytes, endBytes));
    pieces = [lastBytes(pieces)];
  };
  const end = () => {
    // A frame that is cut is looked at for its id only, which is ASCII.
    if (head !== null) onLongLine({ head: head.toString('latin1'), tail: lastBytes(pieces).toString('latin1') });
    else if (bytes > 0) onLine(Buffer.concat(pieces, bytes).toString('utf8'));
    pieces = [];
    bytes = 0;
    head = null;
  };

  return {
    read(chunk) {
      let start = 0;
      for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, start)) {
        take(chunk.subarray(start, at));
        end();
        start = at + 1;
      }
      if (start < chunk.length) take(chunk.subarray(start));
    },
  };
}

/** A copy of the last bytes: the pieces themselves are not kept. */
function lastBytes(pieces: readonly Buffer[]): Buffer {
  const last: Buffer[] = [];
  let bytes = 0;
  for (let index = pieces.length - 1; index >= 0 && bytes < endBytes; index--) {
    const piece = pieces[index]?.subarray(-endBytes) ?? Buffer.alloc(0);
    last.unshift(piece);
    bytes += piece.length;
  }
  return Buffer.from(Buffer.concat(last).subarray(-endBytes));
}
