/** Owns the bytes of every buffered HTTP answer; the only place besides the event stream that writes to a response. */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Reply } from '../rpc/service.ts';

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
  if (answer.status !== 204) headers['Content-Length'] = Buffer.byteLength(answer.body ?? '');
  outgoing.writeHead(answer.status, headers);
  outgoing.end(answer.body);
}

/** The answer that carries a reply: status 200 and its JSON, or 204 when there is nothing to say. */
export function answerOf(reply: Reply): Answer {
  if (reply.body === null) return { status: 204 };
  return { status: 200, headers: retryAfterHeader(reply), body: reply.body };
}

/** The `Retry-After` header of an overload answer, in whole seconds rounded up; no header for any other. */
export function retryAfterHeader(reply: Reply): OutgoingHttpHeaders {
  return reply.retryAfterMs === null ? {} : { 'Retry-After': String(Math.ceil(reply.retryAfterMs / 1000)) };
}
