/** Owns making one call, whatever becomes of it. */
import type { HttpClient } from './http-client.ts';
import { judge } from './target.ts';
import type { CallSettings, EmbedRequest, Target } from './target.ts';
import type { Outcome } from './tally.ts';

/** Makes a call; never rejects. */
export type Send = (request: EmbedRequest) => Promise<{
  readonly outcome: Outcome;
  /** @unit ms */
  readonly elapsedMs: number;
}>;

/** Sends calls to one server. */
export function createSend(client: HttpClient, target: Target, path: string, settings: CallSettings): Send {
  return async (request) => {
    const startMs = performance.now();
    try {
      const answer = await client.post(path, JSON.stringify(target.body(request, settings)));
      return { outcome: judge(target, request.texts.length, answer), elapsedMs: answer.elapsedMs };
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return {
        outcome: { kind: 'failed', reason: code ?? 'no answer', message },
        elapsedMs: performance.now() - startMs,
      };
    }
  };
}
