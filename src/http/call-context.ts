/** Owns what a request over HTTP tells the service about its call. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CallContext } from '../rpc/service.ts';
import type { Caller } from './key-ring.ts';
import { requestIdOf } from './request-id.ts';

/** The context of a call that a caller makes with this request. */
export function callContextOf(
  { headers }: IncomingMessage,
  outgoing: ServerResponse,
  caller: Caller,
  signal: AbortSignal,
): CallContext {
  return {
    transport: 'http',
    requestId: requestIdOf(outgoing),
    traceparent: singleOf(headers['traceparent']),
    tracestate: singleOf(headers['tracestate']),
    signal,
    quota: caller.quota,
  };
}

/** Of several with one name Node gives a list, which is none. */
const singleOf = (header: string | string[] | undefined) => (typeof header === 'string' ? header : undefined);
