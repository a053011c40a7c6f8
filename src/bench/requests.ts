/** Owns the order in which texts are sent, and when there are no more. */
import type { EmbedRequest } from './target.ts';

/** The next call, or null where there is none. */
export type NextRequest = () => EmbedRequest | null;

/** Calls with texts in their order, `batch` a call, beginning again after the last. */
export function createRequests(
  texts: readonly string[],
  options: {
    readonly kind: EmbedRequest['kind'];
    readonly isBulk: boolean;
    readonly batch: number;
    /** How many calls there are at most. */
    readonly maxCalls: number;
    /** Asked before each call: true ends it. */
    readonly isOver: () => boolean;
  },
): NextRequest {
  const { kind, isBulk, batch, maxCalls, isOver } = options;
  const callsPerPass = Math.ceil(texts.length / batch);
  let calls = 0;
  return () => {
    if (calls >= maxCalls || isOver()) return null;
    const first = (calls++ % callsPerPass) * batch;
    return { texts: texts.slice(first, first + batch), kind, isBulk };
  };
}
