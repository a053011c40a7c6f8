/** Owns what `/health/live` and `/health/ready` say. */
import type { Answer } from './answer.ts';

/** Whether every advertised capability has a device that has proved it. */
export interface Readiness {
  readonly isReady: boolean;
  /** Why not, for a person; empty when ready. */
  readonly reasons: readonly string[];
}

/** 200 whenever the process can answer at all. */
export const liveAnswer = (): Answer => ({ status: 200, body: JSON.stringify({ status: 'live' }) });

/** 200 when ready, else 503 with the reasons; a draining server is never ready. */
export function readyAnswer(readiness: Readiness, isDraining: boolean): Answer {
  if (readiness.isReady && !isDraining) return { status: 200, body: JSON.stringify({ status: 'ready' }) };
  const reasons = isDraining ? ['the server is shutting down', ...readiness.reasons] : readiness.reasons;
  return { status: 503, body: JSON.stringify({ status: 'unavailable', reasons }) };
}

/**
 * The same in the words of text-embeddings-inference: an empty answer, or its error.
 * @source text-embeddings-inference, `GET /health`
 */
export function emptyReadyAnswer(readiness: Readiness, isDraining: boolean): Answer {
  if (readiness.isReady && !isDraining) return { status: 200 };
  return { status: 503, body: JSON.stringify({ error: 'unhealthy', error_type: 'Unhealthy' }) };
}
