/** Owns one request that may become a call, from its head to its last byte, in the order in which errors win. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import { maxIdSearchBytes } from '../rpc/recover-id.ts';
import type { Answer } from './answer.ts';
import { decodeBody, isEncoded, readBody, type BodyOutcome } from './body.ts';
import { watchConnection } from './disconnect.ts';
import type { Caller, Identify } from './key-ring.ts';
import type { MemoryBudget, MemoryShare } from './memory-budget.ts';
import { freeBytes } from './memory-budget.ts';
import type { AccessPolicy } from './origin.ts';
import { hostOf, isHostAllowed, isOriginAllowed } from './origin.ts';
import type { RefusalReason, UploadLimits } from './refuse.ts';

/** What receiving a request needs. */
export interface ReceiveParts {
  readonly limits: UploadLimits;
  readonly memory: MemoryBudget;
  readonly policy: AccessPolicy;
  readonly identify: Identify;
  readonly isDraining: () => boolean;
  readonly onRefused: (reason: RefusalReason) => void;
  readonly clock: Clock;
}

/** A refusal that the head of a request alone calls for. */
export interface HeadRefusal {
  readonly refused: Extract<RefusalReason, 'method' | 'host' | 'origin' | 'encoding'>;
  readonly status: number;
  readonly headers?: OutgoingHttpHeaders;
}

/** The refusal that the head calls for, if any; `methods` are those of the path, beside OPTIONS. */
export function refusalOfHead(
  incoming: IncomingMessage,
  methods: readonly string[],
  policy: AccessPolicy,
): HeadRefusal | null {
  const { method = '', headers } = incoming;
  const allowed = [...methods, 'OPTIONS'];
  if (!allowed.includes(method)) return { refused: 'method', status: 405, headers: { Allow: allowed.join(', ') } };
  const host = hostOf(incoming);
  if (!isHostAllowed(host, policy)) return { refused: 'host', status: 403 };
  if (!isOriginAllowed(headers.origin, policy, host)) return { refused: 'origin', status: 403 };
  if (method === 'POST' && isEncoded(headers['content-encoding'])) return { refused: 'encoding', status: 415 };
  return null;
}

/** When a caller that found no memory for its body should come back. @unit ms */
const crowdedRetryAfterMs = 1000;

/** The text of a body and who sent it, or why it is not looked at. */
export type Received =
  | { readonly text: string; readonly caller: Caller }
  | {
      readonly refused: Extract<
        RefusalReason,
        'timeout' | 'crowded' | 'tooLarge' | 'unauthorized' | 'draining' | 'rate' | 'notUtf8'
      >;
      /** The first bytes of the body; none where it was not kept. */
      readonly kept: Buffer;
      /** `rate` and `crowded`: time until the same call may be made. @unit ms */
      readonly retryAfterMs: number;
    };

/** Why a request is not looked at. */
export type Refusal = Exclude<Received, { readonly text: string }>['refused'];

/** The error of a caller without the key. */
export const unauthorizedError = () => new ServiceError('unauthorized', 'The bearer key is missing or wrong');

/** What a refusal is in the catalogue, and how it is said, in whatever protocol. */
export function refusalError(
  refused: Refusal,
  { bodyBytes: limit }: UploadLimits,
  retryAfterMs?: number,
): ServiceError {
  switch (refused) {
    case 'timeout':
      return new ServiceError('invalidRequest', 'The body took too long to arrive');
    case 'crowded':
      return new ServiceError('overloaded', 'Bodies and answers of other callers fill the memory; try again later', {
        retryAfterMs: crowdedRetryAfterMs,
      });
    case 'tooLarge':
      return new ServiceError('tooLarge', `The body is over ${limit} bytes`, { limit });
    case 'unauthorized':
      return unauthorizedError();
    case 'draining':
      return new ServiceError('unavailable', 'The server is shutting down', { retryAfterMs });
    case 'rate':
      return new ServiceError('overloaded', 'This key has made too many calls; try again later', { retryAfterMs });
    case 'notUtf8':
      return new ServiceError('parse', 'The body is not valid UTF-8');
  }
}

/** What answering a request needs beside what was received. */
export interface Exchange {
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal;
  /** Takes the memory for an answer of this length; false where there is none. */
  readonly claimAnswer: (bytes: number) => boolean;
}

/** What was decided about a call when its head arrived. */
interface HeadVerdict {
  readonly caller: Caller | null;
  readonly isDraining: boolean;
  /** Time until its key may make the next call; null where it may now. @unit ms */
  readonly waitMs: number | null;
}

const nothing = Buffer.alloc(0);

/** What a body comes to; null when the caller is gone. */
function receivedOf(body: BodyOutcome, { caller, isDraining, waitMs }: HeadVerdict): Received | null {
  switch (body.kind) {
    case 'gone':
      return null;
    case 'timedOut':
      return { refused: 'timeout', kept: nothing, retryAfterMs: 0 };
    case 'crowded':
    case 'tooLarge':
      return { refused: body.kind, kept: nothing, retryAfterMs: crowdedRetryAfterMs };
    case 'complete':
    case 'cut':
    case 'unsent':
  }
  const kept = body.kind === 'unsent' ? nothing : body.bytes;
  if (caller === null) return { refused: 'unauthorized', kept, retryAfterMs: 0 };
  // A request whose body is still on its way when the server leaves has not been accepted.
  if (isDraining || body.kind === 'cut') return { refused: 'draining', kept, retryAfterMs: 0 };
  if (waitMs !== null) return { refused: 'rate', kept, retryAfterMs: waitMs };
  const text = decodeBody(kept);
  return text === null ? { refused: 'notUtf8', kept: nothing, retryAfterMs: 0 } : { text, caller };
}

/**
 * Reads a request whose head is good and lets `respond` answer it once, or not at all when the caller has left. What is
 * held of the memory is given back when the answer has left.
 */
export async function receive(
  parts: ReceiveParts,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  respond: (received: Received, exchange: Exchange) => Promise<void>,
): Promise<void> {
  const { limits, clock } = parts;
  // Decided when the head arrives: what has come whole before the connections are closed is finished.
  const isDraining = parts.isDraining();
  const caller = parts.identify(incoming.headers.authorization);
  const waitMs = isDraining ? null : (caller?.quota?.takeRequest() ?? null);
  const connection = watchConnection(incoming.socket);
  const share = parts.memory.open();
  try {
    const { bodyBytes: maxBytes, bodyTimeoutMs: timeoutMs } = limits;
    const isWelcome = caller !== null && waitMs === null;
    const keptBytes = isWelcome ? maxBytes : Math.min(maxBytes, maxIdSearchBytes);
    const claim = (bytes: number) => share.claim(bytes);
    const isWanted = isWelcome && !isDraining;
    const body = await readBody(incoming, { maxBytes, keptBytes, isWanted, timeoutMs, claim }, clock);
    const received = receivedOf(body, { caller, isDraining, waitMs });
    if (received === null) return;
    if ('refused' in received) parts.onRefused(received.refused);
    if (body.kind === 'tooLarge' || body.kind === 'cut') outgoing.setHeader('Connection', 'close');
    await respond(received, { signal: connection.signal, claimAnswer: (bytes) => claimAnswer(share, bytes) });
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
}

const claimAnswer = (share: MemoryShare, bytes: number) => bytes <= freeBytes || share.claim(bytes);

const isBeingSent = (outgoing: ServerResponse) =>
  outgoing.headersSent && !outgoing.writableFinished && !outgoing.closed;

/** The answer to an upload that took too long; its connection is of no use any more. */
export const timedOutAnswer: Answer = { status: 408, headers: { Connection: 'close' } };
