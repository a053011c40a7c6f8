/** Owns turning a request away: its body is read away first, then it gets an answer. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import type { Answer } from './answer.ts';
import { writeAnswer } from './answer.ts';
import { readBody } from './body.ts';

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

/** The configured bounds of every upload. */
export interface UploadLimits {
  /** Longest body. @unit bytes */
  readonly bodyBytes: number;
  /** Time for the body to arrive. @unit ms */
  readonly bodyTimeoutMs: number;
}

/**
 * Answers once the sender has finished, because answering into an upload makes it see a reset instead; at once where it
 * waits for leave to send. A body that is too long, too slow or not sent costs the connection.
 */
export async function refuse(
  request: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse },
  answer: Answer,
  limits: UploadLimits,
  clock: Clock,
): Promise<void> {
  const { incoming, outgoing } = request;
  const { bodyBytes: maxBytes, bodyTimeoutMs: timeoutMs } = limits;
  const kept = { keptBytes: 0, isWanted: false, claim: () => true };
  const body = await readBody(incoming, { maxBytes, timeoutMs, ...kept }, clock);
  const isWhole = body.kind === 'complete';
  writeAnswer(outgoing, isWhole ? answer : { ...answer, headers: { ...answer.headers, Connection: 'close' } });
}
