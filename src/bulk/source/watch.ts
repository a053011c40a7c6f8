/** Owns telling a server that has stopped from one that takes its time: the first does not answer a ping either. */
import { RcpError } from '../../client/index.ts';
import type { Client } from './server-call.ts';

/** Nobody works on a call any more. */
export class SilentServer extends Error {
  override readonly name = 'SilentServer';
}

/**
 * Runs a call; whenever it has taken so long without an answer, the server is asked for a sign of life.
 * @throws SilentServer where it gives none, and then the call is aborted; what the call throws
 */
export async function watched<T>(
  client: Pick<Client, 'ping'>,
  silenceMs: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  let timer: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    try {
      await client.ping({ deadlineMs: silenceMs, signal: either });
    } catch (error) {
      if (!isAnswer(error)) stop.abort(new SilentServer(`no sign of life for ${String((2 * silenceMs) / 1000)} s`));
    }
    if (!either.aborted) watch();
  };
  const watch = (): void => {
    timer = setTimeout(() => void look(), silenceMs);
  };
  watch();
  try {
    return await call(either);
  } finally {
    clearTimeout(timer);
    // A ping under way ends with the call, and no other one begins.
    stop.abort(new SilentServer('the call has ended'));
  }
}

/** Whether somebody answered: whatever it says, the server is there. A connection that fails has no status. */
const isAnswer = (error: unknown): boolean =>
  error instanceof RcpError && (!silentNames.has(error.errorName) || error.data.status !== undefined);

const silentNames: ReadonlySet<string> = new Set(['unavailable', 'deadlineExceeded']);
