/** Owns finding lines in the output of a process. */

/** Collects pieces until a line is whole. */
export interface LineReader {
  /** Gives each line that ends in this piece; false when a line is longer than allowed. */
  read(chunk: Buffer): boolean;
}

const newline = 0x0a;

/** A reader of lines of so many bytes at most; lines end at byte 0x0A and nowhere else, and blank ones are none. */
export function createLineReader(maxBytes: number, onLine: (line: string) => void): LineReader {
  let pieces: Buffer[] = [];
  let bytes = 0;
  return {
    read(chunk) {
      let start = 0;
      for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
        const line = Buffer.concat([...pieces, chunk.subarray(start, end)]);
        pieces = [];
        bytes = 0;
        start = end + 1;
        if (line.length > maxBytes) return false;
        if (line.length > 0) onLine(line.toString('utf8'));
      }
      pieces.push(chunk.subarray(start));
      bytes += chunk.length - start;
      return bytes <= maxBytes;
    },
  };
}
