/** Owns a server as a child process: started when it is needed, one JSON text a line, ended by `shutdown`. */
import { spawn } from 'node:child_process';
import { abortErrorOf, errorOf } from './error.ts';
import { createLineReader } from './lines.ts';
import { createOpenCalls } from './open-calls.ts';
import { becauseOf } from './reason.ts';
import { orAborted } from './scope.ts';
import type { StdioTarget } from './stdio-options.ts';
import { frameOf, type Request, type Result, type Transport } from './transport.ts';

/** Bounds of a process. */
export interface StdioTransportOptions {
  readonly maxAnswerBytes: number;
  /**
   * Time that a server has to answer `shutdown`, then to end by itself, and then after SIGTERM, before it is killed.
   * Default 5 s. @unit ms
   */
  readonly endTimeoutMs?: number;
}

const defaultEndTimeoutMs = 5000;

/** One process, from its start to its end. */
interface Session {
  readonly hasEnded: () => boolean;
  /** The answer to `initialize`. */
  readonly opened: Promise<Result>;
  send(request: Request, signal: AbortSignal): Promise<Result>;
  end(): Promise<void>;
}

/** A way to a server of one's own. One that has ended is started again by the next attempt of a request. */
export function createStdioTransport(target: StdioTarget, options: StdioTransportOptions): Transport {
  let session: Session | null = null;
  let isClosed = false;
  const current = (): Session => {
    if (isClosed) throw errorOf('unavailable', `${target.command}: closed`, { retryable: false });
    if (session === null || session.hasEnded()) session = startSession(target, options);
    return session;
  };
  return {
    address: target.command,
    open: async (signal) => orAborted(current().opened, signal),
    async send(request, signal) {
      const used = current();
      await orAborted(used.opened, signal);
      return used.send(request, signal);
    },
    async close() {
      isClosed = true;
      await session?.end();
    },
  };
}

function startSession(target: StdioTarget, options: StdioTransportOptions): Session {
  const { command, args = [], cwd, env, stderr = 'inherit' } = target;
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', stderr], cwd, env });
  const { maxAnswerBytes, endTimeoutMs = defaultEndTimeoutMs } = options;
  const calls = createOpenCalls(command, maxAnswerBytes);
  let lastId = 0;
  let failure: Error | null = null;
  const hasEnded = () => failure !== null;

  const fail = (error: Error) => {
    failure ??= error;
    calls.fail(failure);
  };
  const hasClosed = new Promise<void>((resolve) => {
    child.once('close', (code, signal) => {
      fail(errorOf('unavailable', `${command}: the server ended (${signal ?? `exit code ${String(code)}`})`));
      resolve();
    });
  });
  child.on('error', (cause) => {
    const message = `${command}: the server could not be started${becauseOf(cause)}`;
    fail(errorOf('unavailable', message, { retryable: false, cause }));
  });
  // Whoever writes to a process that has ended learns it from its end.
  child.stdin.on('error', () => undefined);

  const reader = createLineReader(maxAnswerBytes, { onLine: calls.receive, onLongLine: calls.receiveLong });
  child.stdout.on('data', (chunk: Buffer) => {
    reader.read(chunk);
  });

  const send = async (request: Request, signal: AbortSignal): Promise<Result> => {
    if (signal.aborted) throw abortErrorOf(signal);
    if (failure !== null) throw failure;
    const id = ++lastId;
    const answer = calls.add(id, request.onProgress);
    child.stdin.write(`${frameOf(id, request)}\n`);
    try {
      return await orAborted(answer, signal);
    } finally {
      // Still there only where nobody waits for the answer any more.
      if (calls.forget(id) && !hasEnded()) {
        child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancel', params: { id } })}\n`);
      }
    }
  };

  const control = (method: string, params: Request['params'], signal: AbortSignal) =>
    send({ method, params, deadlineMs: Infinity, onProgress: null }, signal);
  const client = { name: 'trivec-client', version: '1' };
  const opened = control('initialize', { protocolVersion: 1, client, capabilities: {} }, new AbortController().signal);
  // Whoever needs it waits for it; nobody else has to know.
  opened.catch(() => undefined);

  return {
    hasEnded,
    opened,
    send,
    async end() {
      if (failure === null) {
        await control('shutdown', {}, AbortSignal.timeout(endTimeoutMs)).catch(() => undefined);
      }
      child.stdin.end();
      const timers = [
        setTimeout(() => child.kill(), endTimeoutMs),
        setTimeout(() => {
          child.kill('SIGKILL');
          // A process that it started may hold its output open, and outlive it.
          child.stdout.destroy();
          child.stdin.destroy();
        }, 2 * endTimeoutMs),
      ];
      // A process that was never there closes nothing.
      if (child.pid !== undefined) await hasClosed;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
