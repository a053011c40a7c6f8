/** Owns reading the answers out of the bytes of one connection. */

/** One answer of a connection. */
export interface RawAnswer {
  readonly status: number;
  /** In lower case. */
  readonly contentType: string;
  readonly body: Buffer;
}

/** What the bytes hold so far; `isBroken` where they are no HTTP. */
export interface RawAnswers {
  readonly answers: readonly RawAnswer[];
  readonly isBroken: boolean;
}

const blankLine = Buffer.from('\r\n\r\n');

/** The body in chunks that begins at a place and where it ends; null while it is not all there. */
function readChunks(bytes: Buffer, start: number): { body: Buffer; end: number } | null {
  const parts: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return null;
    const length = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    const end = lineEnd + 2 + length + 2;
    if (!(end <= bytes.length)) return null;
    parts.push(bytes.subarray(lineEnd + 2, end - 2));
    at = end;
    if (length === 0) return { body: Buffer.concat(parts), end: at };
  }
}

/**
 * The answers that are complete; interim ones are left out. Where some of the requests were `HEAD`, an answer may have a
 * length and no body.
 */
export function readAnswers(bytes: Buffer, isAtEnd: boolean, hasHeads = false): RawAnswers {
  const answers: RawAnswer[] = [];
  let at = 0;
  while (at < bytes.length) {
    const headEnd = bytes.indexOf(blankLine, at);
    if (headEnd === -1) return { answers, isBroken: isAtEnd };
    const head = bytes.toString('latin1', at, headEnd);
    const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |\r|$)/u.exec(head)?.[1]);
    if (Number.isNaN(status)) return { answers, isBroken: true };
    const header = (name: string) => new RegExp(`^${name}: *(.*?)\\r?$`, 'imu').exec(head)?.[1]?.toLowerCase() ?? '';
    const start = headEnd + blankLine.length;
    const contentType = header('content-type');
    if (header('transfer-encoding') === 'chunked') {
      const read = readChunks(bytes, start);
      if (read === null) return { answers, isBroken: isAtEnd };
      answers.push({ status, contentType, body: read.body });
      at = read.end;
      continue;
    }
    const isBodiless = hasHeads && (start === bytes.length || bytes.subarray(start).indexOf('HTTP/1.') === 0);
    const end = start + (isBodiless ? 0 : Number(header('content-length') || '0'));
    if (end > bytes.length) return { answers, isBroken: isAtEnd };
    if (status >= 200) answers.push({ status, contentType, body: bytes.subarray(start, end) });
    at = end;
  }
  return { answers, isBroken: false };
}
