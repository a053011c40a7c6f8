/** Owns a server of this program that the benchmark starts: its start, and its end in every case. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { ConfigurationError } from '../errors.ts';

/** Longest time from the start to the listening line: models may have to be prepared first. @unit ms */
const startTimeoutMs = 300_000;
/** Longest time from SIGTERM to the end, after which the process is killed. @unit ms */
const endTimeoutMs = 15_000;
/** Longest stderr that is kept for messages. @unit characters */
const maxKeptStderr = 16_384;

/** A server that listens. */
export interface ServedChild {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  readonly pid: number;
  /** Ends it, by force where it does not end itself. */
  end(): Promise<void>;
}

/**
 * Starts `serve` on a free port of loopback and waits until it says that it listens.
 * @throws ConfigurationError where it refuses its flags; Error where it ends, is silent, or the signal aborts
 */
export async function startServer(options: {
  /** The compiled program. */
  readonly entry: string;
  /** The compiled entry that runs it and ends it with this process. */
  readonly launcher: string;
  readonly flags: readonly string[];
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}): Promise<ServedChild> {
  const { entry, launcher, flags, variables, signal } = options;
  // What the server says below `warn` is not the benchmark's; flags of the caller come last, and the last one counts.
  const own = ['--host', '127.0.0.1', '--port', '0', '--stdio', 'false', '--log-level', 'warn'];
  const child = spawn(process.execPath, [launcher, entry, 'serve', ...own, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...variables },
  });
  const killWithParent = () => child.kill('SIGKILL');
  process.once('exit', killWithParent);
  const closed = new Promise<number | null>((resolve) => {
    child.once('error', () => {
      resolve(null);
    });
    child.once('close', resolve);
  });
  void closed.then(() => process.off('exit', killWithParent));
  try {
    const url = await listening(child, closed, signal);
    return { url, pid: child.pid ?? 0, end: () => endProcess(child, closed) };
  } catch (error) {
    child.kill('SIGKILL');
    await closed;
    throw error;
  }
}

function listening(child: ChildProcess, closed: Promise<number | null>, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    let stderr = '';
    const timer = setTimeout(() => {
      reject(new Error(`the server did not listen within ${startTimeoutMs / 1000} s:\n${stderr}`));
    }, startTimeoutMs);
    const abort = () => {
      reject(new Error('interrupted'));
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-maxKeptStderr);
      const url = /^trivec listening on (http:\/\/\S+)\/rcp$/mu.exec(stderr)?.[1];
      if (url !== undefined) settle(() => resolve(url));
    });
    const settle = (how: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      how();
    };
    void closed.then((code) => {
      settle(() => {
        reject(failureOf(code, stderr));
      });
    });
  });
}

/** The problems that a server names by exit code 2 are the caller's flags. */
function failureOf(code: number | null, stderr: string): Error {
  const problems = [...stderr.matchAll(/^trivec: (.+)$/gmu)].map(([, problem]) => `the server: ${problem ?? ''}`);
  if (code === 2 && problems.length > 0) return new ConfigurationError(problems);
  return new Error(`the server ended with exit code ${String(code)}:\n${stderr}`);
}

async function endProcess(child: ChildProcess, closed: Promise<number | null>): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), endTimeoutMs);
  try {
    await closed;
  } finally {
    clearTimeout(timer);
  }
}
