/** Owns a stdio session over in-memory streams with a fake service behind it. */
import { PassThrough } from 'node:stream';
import { serveStdio, type StdioOptions } from '../../../src/stdio/serve.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { createFakeService, newSession } from '../http/fake-service.ts';

export const drainMs = 2000;

/** Starts a session; `lines` is everything written so far, one entry a line. */
export function startSession(options: Partial<StdioOptions> = {}) {
  const input = new PassThrough();
  const output = new PassThrough();
  const clock = createFakeClock();
  const service = createFakeService();
  const errors: unknown[] = [];
  let written = '';
  output.setEncoding('utf8').on('data', (chunk: string) => (written += chunk));
  const session = newSession();
  const server = serveStdio({
    input,
    output,
    service,
    sessions: { ofStdio: () => session },
    clock,
    limits: { frameBytes: 1000, maxInFlightFrames: 100, drainMs, shutdownMs: drainMs },
    log: { info: () => undefined, error: (fields) => errors.push(fields['err']) },
    ...options,
  });
  let isFinished = false;
  void server.finished.then(() => (isFinished = true));
  /** Lets streams and promises settle. */
  const settle = () => clock.advance(0);
  return {
    ...{ input, output, clock, service, server, session, errors, settle },
    isFinished: () => isFinished,
    lines: async () => {
      await settle();
      await settle();
      return written.split('\n').slice(0, -1);
    },
  };
}
