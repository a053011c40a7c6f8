/** Owns the bytes of every buffered HTTP answer; the only place besides the event stream that writes to a response. */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Reply } from '../rpc/service.ts';
import type { CallTimes } from '../telemetry/stages.ts';

/** One complete answer. */
export interface Answer {
  readonly status: number;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Buffer | string;
  /** Exactly as it goes on the wire; `application/json` when absent and there is a body. */
  readonly contentType?: string;
}

/**
 * Writes an answer with its `Content-Length`, so that it is never chunked; headers set on the response before (CORS,
 * `Connection`) are kept. Writes nothing when the caller is gone.
 */
export function writeAnswer(outgoing: ServerResponse, answer: Answer): void {
  if (outgoing.destroyed || outgoing.headersSent) return;
  const headers: OutgoingHttpHeaders = { ...answer.headers };
  if (answer.body !== undefined) headers['Content-Type'] = answer.contentType ?? 'application/json';
  if (answer.status !== 204 && answer.status !== 304) headers['Content-Length'] = Buffer.byteLength(answer.body ?? '');
  outgoing.writeHead(answer.status, headers);
  endInPieces(outgoing, typeof answer.body === 'object' ? answer.body : Buffer.from(answer.body ?? ''));
}

/**
 * Most bytes handed to the socket at a time: Node tells of a write only when all of it has left, so that a whole large
 * answer would show no progress until its end.
 * @unit bytes
 */
export const pieceBytes = 65_536;

/** Sends the last bytes of a response whose head is written, each piece when the one before it has left, and ends it. */
export function endInPieces(outgoing: ServerResponse, bytes: Buffer): void {
  if (bytes.length <= pieceBytes) {
    outgoing.end(bytes);
    return;
  }
  // The caller may leave between two pieces.
  outgoing.on('error', () => undefined);
  Readable.from(piecesOf(bytes)).pipe(outgoing);
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += pieceBytes) yield bytes.subarray(start, start + pieceBytes);
}

/** The answer that carries a reply: status 200 and its JSON, or 204 when there is nothing to say. */
export function answerOf(reply: Reply): Answer {
  if (reply.body === null) return { status: 204 };
  return { status: 200, headers: { ...retryAfterHeader(reply), ...serverTimingHeader(reply.times) }, body: reply.body };
}

/** The `Retry-After` header of an overload answer, in whole seconds rounded up; no header for any other. */
export function retryAfterHeader(reply: Reply): OutgoingHttpHeaders {
  return reply.retryAfterMs === null ? {} : { 'Retry-After': String(Math.ceil(reply.retryAfterMs / 1000)) };
}

/**
 * The `Server-Timing` header of an answer to one call: how long it took, and where; no header for any other.
 * @unit ms
 */
export function serverTimingHeader(times: CallTimes | undefined): OutgoingHttpHeaders {
  if (times === undefined) return {};
  const { tokenizeMs, queueMs, runMs, totalMs } = times;
  const entry = (name: string, ms: number | null) => (ms === null ? '' : `${name};dur=${ms.toFixed(1)}, `);
  const stages = entry('tokenise', tokenizeMs) + entry('queue', queueMs) + entry('run', runMs);
  return { 'Server-Timing': `${stages}total;dur=${totalMs.toFixed(1)}` };
}
