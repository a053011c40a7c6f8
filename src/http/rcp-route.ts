/** Owns one RCP request over HTTP: what its refusals and its reply look like on the wire. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { ServiceError } from '../errors.ts';
import { maxIdSearchBytes, recoverId } from '../rpc/recover-id.ts';
import type { FrameService, Reply } from '../rpc/service.ts';
import type { SessionStore } from '../rpc/session.ts';
import { chooseFormat } from './accept.ts';
import type { Answer } from './answer.ts';
import { answerOf, writeAnswer } from './answer.ts';
import { callContextOf } from './call-context.ts';
import type { Caller } from './key-ring.ts';
import { preflightHeaders } from './origin.ts';
import type { Exchange, ReceiveParts, Received } from './receive.ts';
import { receive, refusalError, refusalOfHead, timedOutAnswer, unauthorizedError } from './receive.ts';
import { refuse } from './refuse.ts';
import { createEventStream } from './sse.ts';

/** What handling a request needs. */
export interface RcpRouteOptions extends ReceiveParts {
  readonly service: FrameService;
  readonly sessions: Pick<SessionStore, 'ofHttp'>;
}

/** Handles one request at the path that stands for `pathMethod`. */
export type RcpRoute = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  pathMethod: string | null,
) => Promise<void>;

/** Text to handle, a reply in the format that the caller asked for, or an answer of its own kind. */
type Outcome =
  { readonly text: string; readonly caller: Caller } | { readonly reply: Reply } | { readonly answer: Answer };

const methods = ['POST'];
const allow: OutgoingHttpHeaders = { Allow: 'POST, OPTIONS' };

/** The 401 of a caller without the key, with the body that known clients read. */
export function unauthorizedAnswer(service: FrameService, rawId: string | null): Answer {
  const { errorName, message } = unauthorizedError();
  const reply = service.refuse(errorName, message, rawId);
  return { ...answerOf(reply), status: 401, headers: { 'WWW-Authenticate': 'Bearer' } };
}

/** A route over one service; it answers exactly once, or not at all when the caller has left. */
export function createRcpRoute(options: RcpRouteOptions): RcpRoute {
  const { service, sessions, limits, policy, onRefused, clock } = options;

  const replyOf = ({ errorName, message, data }: ServiceError, rawId: string | null): Reply =>
    service.refuse(errorName, message, rawId, data.retryAfterMs);

  const outcomeOf = (received: Received): Outcome => {
    if ('text' in received) return received;
    const { refused, kept, retryAfterMs } = received;
    if (refused === 'timeout') return { answer: timedOutAnswer };
    const rawId = recoverId(kept.subarray(0, maxIdSearchBytes));
    if (refused === 'unauthorized') return { answer: unauthorizedAnswer(service, rawId) };
    return { reply: replyOf(refusalError(refused, limits, refused === 'rate' ? retryAfterMs : undefined), rawId) };
  };

  const respond = async (
    { incoming, outgoing, pathMethod }: RcpRequest,
    outcome: Outcome,
    { signal, claimAnswer }: Exchange,
  ): Promise<void> => {
    if ('answer' in outcome) {
      writeAnswer(outgoing, outcome.answer);
      return;
    }
    const text = 'text' in outcome ? outcome.text : null;
    const format = chooseFormat({
      accept: incoming.headers.accept,
      isBatch: text !== null && /^\s*\[/.test(text),
      hasProgressToken: () => text !== null && service.wantsProgress(text),
    });
    const stream = format === 'eventStream' ? createEventStream(outgoing) : null;
    const built =
      'reply' in outcome
        ? outcome.reply
        : await service.handleText(outcome.text, {
            ...callContextOf(incoming, outgoing, outcome.caller, signal),
            pathMethod,
            session: sessions.ofHttp(sessionHeaderOf(incoming)),
            notify:
              stream === null
                ? null
                : (frame) => {
                    stream.notify(frame);
                  },
          });
    if (signal.aborted) return;
    const hasRoom = claimAnswer(built.body?.length ?? 0);
    if (!hasRoom) onRefused('crowded');
    const reply = hasRoom
      ? built
      : replyOf(
          refusalError('crowded', limits),
          text === null ? null : recoverId(Buffer.from(text.slice(0, maxIdSearchBytes))),
        );
    if (options.isDraining() && !outgoing.headersSent) outgoing.setHeader('Connection', 'close');
    if (stream === null) writeAnswer(outgoing, answerOf(reply));
    else stream.finish(reply);
  };

  return async (incoming, outgoing, pathMethod) => {
    const refusal = refusalOfHead(incoming, methods, policy);
    if (refusal !== null) {
      const { refused, ...answer } = refusal;
      onRefused(refused);
      await refuse({ incoming, outgoing }, answer, limits, clock);
      return;
    }
    if (incoming.method === 'OPTIONS') {
      const isPreflight = incoming.headers.origin !== undefined;
      writeAnswer(outgoing, { status: 204, headers: isPreflight ? preflightHeaders : allow });
      return;
    }
    await receive(options, incoming, outgoing, (received, exchange) =>
      respond({ incoming, outgoing, pathMethod }, outcomeOf(received), exchange),
    );
  };
}

interface RcpRequest {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly pathMethod: string | null;
}

const sessionHeaderOf = (incoming: IncomingMessage): string | undefined => {
  const value = incoming.headers['rcp-session'];
  return Array.isArray(value) ? value[0] : value;
};
