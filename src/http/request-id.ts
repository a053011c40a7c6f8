/** Owns the name of a request: the caller's where it is short and clean, else one of our own; it goes back with the answer. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

const headerName = 'X-Request-Id';
/** What may stand in a log and in a header as it is. */
const cleanId = /^[\w.:-]{1,64}$/;

/** Names a request, at its beginning; every answer to it then carries the name. */
export function nameRequest(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const given = incoming.headers['x-request-id'];
  outgoing.setHeader(headerName, typeof given === 'string' && cleanId.test(given) ? given : randomUUID());
}

/** The name that `nameRequest` gave. */
export const requestIdOf = (outgoing: ServerResponse): string => String(outgoing.getHeader(headerName) ?? '');
