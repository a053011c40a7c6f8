/** Owns one RCP request over HTTP, from its head to its last byte, in the order in which errors win. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import { maxIdSearchBytes, recoverId } from '../rpc/recover-id.ts';
import type { FrameService, Reply } from '../rpc/service.ts';
import type { SessionStore } from '../rpc/session.ts';
import { chooseFormat } from './accept.ts';
import type { Answer } from './answer.ts';
import { answerOf, writeAnswer } from './answer.ts';
import type { BodyOutcome } from './body.ts';
import type { MemoryBudget, MemoryShare } from './memory-budget.ts';
import { freeBytes } from './memory-budget.ts';
import { decodeBody, isEncoded, readBody } from './body.ts';
import { watchConnection } from './disconnect.ts';
import type { Caller, Identify } from './key-ring.ts';
import type { AccessPolicy } from './origin.ts';
import { hostOf, isHostAllowed, isOriginAllowed, preflightHeaders } from './origin.ts';
import type { UploadLimits } from './refuse.ts';
import { refuse } from './refuse.ts';
import { requestIdOf } from './request-id.ts';
import { createEventStream } from './sse.ts';

/** Why a request was turned away before any of it was understood, or its answer given up; a label for metrics. */
export type RefusalReason =
  | 'method'
  | 'host'
  | 'origin'
  | 'encoding'
  | 'timeout'
  | 'tooLarge'
  | 'crowded'
  | 'unauthorized'
  | 'rate'
  | 'draining'
  | 'notUtf8'
  | 'stalled';

/** What handling a request needs. */
export interface RcpRouteOptions {
  readonly service: FrameService;
  readonly sessions: Pick<SessionStore, 'ofHttp'>;
  readonly limits: UploadLimits;
  readonly memory: MemoryBudget;
  readonly policy: AccessPolicy;
  readonly identify: Identify;
  readonly isDraining: () => boolean;
  readonly onRefused: (reason: RefusalReason) => void;
  readonly clock: Clock;
}

/** Handles one request at the path that stands for `pathMethod`. */
export type RcpRoute = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  pathMethod: string | null,
) => Promise<void>;

interface Refused {
  readonly refused: RefusalReason;
}
/** Text to handle, a reply in the format that the caller asked for, or an answer of its own kind. */
type Outcome =
  { readonly text: string } | (Refused & { readonly reply: Reply }) | (Refused & { readonly answer: Answer });

/** What was decided about a call when its head arrived. */
interface HeadVerdict {
  readonly caller: Caller | null;
  readonly isDraining: boolean;
  /** Time until its key may make the next call; null where it may now. @unit ms */
  readonly waitMs: number | null;
}

interface RcpCall {
  readonly share: MemoryShare;
  readonly caller: Caller | null;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly pathMethod: string | null;
  readonly signal: AbortSignal;
}

const closing: OutgoingHttpHeaders = { Connection: 'close' };
const allow: OutgoingHttpHeaders = { Allow: 'POST, OPTIONS' };

/** When a caller that found no memory for its body should come back. @unit ms */
const crowdedRetryAfterMs = 1000;

/** The 401 of a caller without the key, with the body that known clients read. */
export function unauthorizedAnswer(service: FrameService, rawId: string | null): Answer {
  const reply = service.refuse('unauthorized', 'The bearer key is missing or wrong', rawId);
  return { ...answerOf(reply), status: 401, headers: { 'WWW-Authenticate': 'Bearer' } };
}

/** A route over one service; it answers exactly once, or not at all when the caller has left. */
export function createRcpRoute(options: RcpRouteOptions): RcpRoute {
  const { service, sessions, limits, policy, onRefused, clock } = options;

  /** The refusal that the head of the request alone calls for, if any. */
  const refusalOfHead = (incoming: IncomingMessage): (Refused & { readonly answer: Answer }) | null => {
    const { method, headers } = incoming;
    if (method !== 'POST' && method !== 'OPTIONS')
      return { refused: 'method', answer: { status: 405, headers: allow } };
    if (!isHostAllowed(hostOf(incoming), policy)) return { refused: 'host', answer: { status: 403 } };
    if (!isOriginAllowed(headers.origin, policy)) return { refused: 'origin', answer: { status: 403 } };
    if (method === 'POST' && isEncoded(headers['content-encoding']))
      return { refused: 'encoding', answer: { status: 415 } };
    return null;
  };

  const crowdedReply = (rawId: string | null): Reply => {
    const message = 'Bodies and answers of other callers fill the memory; try again later';
    return service.refuse('overloaded', message, rawId, crowdedRetryAfterMs);
  };

  /** What a body comes to; null when the caller is gone. */
  const outcomeOf = (body: BodyOutcome, { caller, isDraining, waitMs }: HeadVerdict): Outcome | null => {
    if (body.kind === 'gone') return null;
    if (body.kind === 'timedOut') return { refused: 'timeout', answer: { status: 408, headers: closing } };
    if (body.kind === 'crowded') {
      return { refused: 'crowded', reply: crowdedReply(null) };
    }
    if (body.kind === 'tooLarge') {
      const message = `The body is over ${String(limits.bodyBytes)} bytes`;
      return { refused: 'tooLarge', reply: service.refuse('tooLarge', message, null) };
    }
    const rawId = () => recoverId(body.bytes.subarray(0, maxIdSearchBytes));
    if (caller === null) return { refused: 'unauthorized', answer: unauthorizedAnswer(service, rawId()) };
    if (isDraining) {
      return { refused: 'draining', reply: service.refuse('unavailable', 'The server is shutting down', rawId()) };
    }
    if (waitMs !== null) {
      const message = 'This key has made too many calls; try again later';
      return { refused: 'rate', reply: service.refuse('overloaded', message, rawId(), waitMs) };
    }
    const text = decodeBody(body.bytes);
    if (text !== null) return { text };
    return { refused: 'notUtf8', reply: service.refuse('parse', 'The body is not valid UTF-8', null) };
  };

  const respond = async (call: RcpCall, outcome: Outcome): Promise<void> => {
    const { incoming, outgoing, signal } = call;
    if ('refused' in outcome) onRefused(outcome.refused);
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
            transport: 'http',
            requestId: requestIdOf(outgoing),
            traceparent: singleOf(incoming.headers['traceparent']),
            tracestate: singleOf(incoming.headers['tracestate']),
            pathMethod: call.pathMethod,
            signal,
            session: sessions.ofHttp(sessionHeaderOf(incoming)),
            quota: call.caller?.quota ?? null,
            notify:
              stream === null
                ? null
                : (frame) => {
                    stream.notify(frame);
                  },
          });
    if (signal.aborted) return;
    const answerBytes = built.body?.length ?? 0;
    const hasRoom = answerBytes <= freeBytes || call.share.claim(answerBytes);
    if (!hasRoom) onRefused('crowded');
    const reply = hasRoom
      ? built
      : crowdedReply(text === null ? null : recoverId(Buffer.from(text.slice(0, maxIdSearchBytes))));
    if (options.isDraining() && !outgoing.headersSent) outgoing.setHeader('Connection', 'close');
    if (stream === null) writeAnswer(outgoing, answerOf(reply));
    else stream.finish(reply);
  };

  return async (incoming, outgoing, pathMethod) => {
    const refusal = refusalOfHead(incoming);
    if (refusal !== null) {
      onRefused(refusal.refused);
      await refuse({ incoming, outgoing }, refusal.answer, limits, clock);
      return;
    }
    if (incoming.method === 'OPTIONS') {
      const isPreflight = incoming.headers.origin !== undefined;
      writeAnswer(outgoing, { status: 204, headers: isPreflight ? preflightHeaders : allow });
      return;
    }
    // Decided when the head arrives: what was accepted before the drain began is finished.
    const isDraining = options.isDraining();
    const caller = options.identify(incoming.headers.authorization);
    const waitMs = isDraining ? null : (caller?.quota?.takeRequest() ?? null);
    const connection = watchConnection(incoming.socket);
    const share = options.memory.open();
    try {
      const { bodyBytes: maxBytes, bodyTimeoutMs: timeoutMs } = limits;
      const isWelcome = caller !== null && waitMs === null;
      const keptBytes = isWelcome ? maxBytes : Math.min(maxBytes, maxIdSearchBytes);
      const claim = (bytes: number) => share.claim(bytes);
      const body = await readBody(incoming, { maxBytes, keptBytes, timeoutMs, claim }, clock);
      const outcome = outcomeOf(body, { caller, isDraining, waitMs });
      if (outcome === null) return;
      if (body.kind === 'tooLarge') outgoing.setHeader('Connection', 'close');
      await respond({ incoming, outgoing, pathMethod, signal: connection.signal, share, caller }, outcome);
    } finally {
      const release = () => {
        share.release();
        connection.release();
      };
      // Held until the answer is sent: the texts of a call that waits are as large as its body.
      if (isBeingSent(outgoing) && !connection.signal.aborted) {
        outgoing.once('close', release);
        // A response behind another one on its connection never closes when the connection does.
        connection.signal.addEventListener('abort', release);
      } else release();
    }
  };
}

const isBeingSent = (outgoing: ServerResponse) =>
  outgoing.headersSent && !outgoing.writableFinished && !outgoing.closed;

/** Of several with one name Node gives a list, which is none. */
const singleOf = (header: string | string[] | undefined) => (typeof header === 'string' ? header : undefined);

const sessionHeaderOf = (incoming: IncomingMessage): string | undefined => {
  const value = incoming.headers['rcp-session'];
  return Array.isArray(value) ? value[0] : value;
};
