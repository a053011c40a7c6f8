/** Owns what it means when a request over HTTP brings no answer of RCP. */
import { errorOf, type RcpError } from './error.ts';
import { becauseOf } from './reason.ts';

/** Statuses by which a server, or a proxy in front of it, asks for patience. */
const busyStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** The error for a connection that failed. */
export const lostConnection = (address: string, cause: unknown): RcpError =>
  errorOf('unavailable', `${address}: no connection, or it was lost before the answer${becauseOf(cause)}`, { cause });

/** The error for an answer that began well and ended too early: whoever sent it was lost. */
export const cutAnswer = (address: string, status: number): RcpError =>
  errorOf('unavailable', `${address}: the connection ended before the answer was whole`, { data: { status } });

/** The error for an answer that no RCP server gave. */
export function foreignAnswer({ status, headers }: Response, address: string): RcpError {
  const retryAfterMs = retryAfterMsOf(headers);
  const data = { status, ...(retryAfterMs !== null && { retryAfterMs }) };
  const about = `${address}: HTTP ${status} without an answer of RCP`;
  if (status === 429) return errorOf('overloaded', about, { data });
  // A proxy with a smaller limit than the server's: a list is then cut further.
  if (status === 413) return errorOf('tooLarge', about, { data });
  if (busyStatuses.has(status)) return errorOf('unavailable', about, { data });
  if (status === 401 || status === 403) return errorOf('unauthorized', `${about}: the key or the origin`, { data });
  return errorOf('internal', `${about}; is this the address of a server?`, { data, retryable: false });
}

/** What `Retry-After` asks for, in seconds or as a date of HTTP; null where it asks for nothing. @unit ms */
function retryAfterMsOf(headers: Headers): number | null {
  const value = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000;
  const thenMs = dateMsOf(value);
  if (thenMs === null) return null;
  // By the clock of whoever wrote the date: the machine's own may be wrong.
  const nowMs = dateMsOf(headers.get('date') ?? '') ?? Date.now();
  return Math.max(0, thenMs - nowMs);
}

/** `Date.parse` reads much that is no date of HTTP, each engine something else. */
function dateMsOf(value: string): number | null {
  const ms = value.endsWith('GMT') ? Date.parse(value) : NaN;
  return Number.isNaN(ms) ? null : ms;
}
