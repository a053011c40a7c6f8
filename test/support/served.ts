/** Owns starting the real server as a process of its own, a small client for it, and its end. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Prepared graphs are kept between tests: what is derived from a model depends on the model only. */
const sharedCacheDir = `${root}.cache/served`;

/** Longest time from the start of the process to its listening line, unless a caller says another. @unit ms */
const defaultStartTimeoutMs = 45_000;
/** Longest time from SIGTERM to the end, after which the process is killed. @unit ms */
const endTimeoutMs = 15_000;
/** Longest stderr that is kept for error messages. @unit characters */
const maxKeptStderr = 65_536;

/** How to start a server. */
export interface ServeOptions {
  /** Flags of `trivec serve`, such as `['--precision', 'fp16']`. */
  readonly flags?: readonly string[];
  /** Added to an environment that holds nothing but PATH and HOME. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Flags of Node itself, such as `['--cpu-prof']`. */
  readonly nodeFlags?: readonly string[];
  /** Longest time from the start of the process to its listening line. @unit ms */
  readonly startTimeoutMs?: number;
  /** Key that the small client sends; the server must know it from its flags. */
  readonly apiKey?: string;
}

/** An error answer. */
export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: number, message: string, data: Readonly<Record<string, unknown>>) {
    super(`${code}: ${message}`);
    this.code = code;
    this.data = data;
  }
}

/** A server that listens. */
export interface Served {
  /** Such as `http://127.0.0.1:40123`. */
  readonly baseUrl: string;
  readonly pid: number;
  /**
   * The result of one call.
   * @throws RpcError
   */
  call<Result = Record<string, unknown>>(method: string, params?: unknown): Promise<Result>;
  /** The error of a call that must fail. */
  refusal(method: string, params?: unknown): Promise<RpcError>;
  /** What it has written to stderr, the newest part. */
  stderr(): string;
  /** Ends it with SIGTERM and gives its exit code; a second call gives the same. */
  end(): Promise<number | null>;
}

/**
 * Starts `dist/main.js serve` on a free port and waits until it says that it listens.
 * @throws Error with its stderr where it ends or is silent instead
 */
export async function startServed(options: ServeOptions = {}): Promise<Served> {
  const { flags = [], environment = {}, nodeFlags = [], startTimeoutMs = defaultStartTimeoutMs, apiKey } = options;
  const child = spawn(
    process.execPath,
    [...nodeFlags, `${root}dist/main.js`, 'serve', '--port', '0', '--log-level', 'warn', ...flags],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...inherited(), TRIVEC_CACHE_DIR: sharedCacheDir, ...environment },
    },
  );
  const killWithParent = () => child.kill('SIGKILL');
  process.once('exit', killWithParent);
  const closed = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      process.off('exit', killWithParent);
      resolve(code);
    });
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-maxKeptStderr);
  });
  const baseUrl = await waitForAddress(child, closed, () => stderr, startTimeoutMs);
  let ended: Promise<number | null> | null = null;
  return {
    baseUrl,
    pid: child.pid ?? 0,
    call: <Result>(method: string, params: unknown = {}) => call(baseUrl, method, params, apiKey) as Promise<Result>,
    async refusal(method, params = {}) {
      try {
        await call(baseUrl, method, params, apiKey);
      } catch (error) {
        if (error instanceof RpcError) return error;
        throw error;
      }
      throw new Error(`${method} was expected to fail and did not`);
    },
    stderr: () => stderr,
    end() {
      ended ??= endProcess(child, closed);
      return ended;
    },
  };
}

function inherited(): Record<string, string> {
  return Object.fromEntries(
    ['PATH', 'HOME'].flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

async function waitForAddress(
  child: ChildProcess,
  closed: Promise<number | null>,
  stderr: () => string,
  startTimeoutMs: number,
): Promise<string> {
  let stopWaiting: () => void = () => undefined;
  const listening = new Promise<string>((resolve, reject) => {
    const look = () => {
      const address = /^trivec listening on (http:\/\/\S+)\/rcp$/mu.exec(stderr())?.[1];
      if (address !== undefined) resolve(address);
    };
    const timer = setTimeout(() => {
      reject(new Error(`the server did not listen within ${startTimeoutMs} ms:\n${stderr()}`));
    }, startTimeoutMs);
    stopWaiting = () => {
      clearTimeout(timer);
      child.stderr?.off('data', look);
    };
    child.stderr?.on('data', look);
    void closed.then((code) => {
      reject(new Error(`the server ended with exit code ${String(code)}:\n${stderr()}`));
    });
  });
  try {
    return await listening;
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    stopWaiting();
  }
}

async function endProcess(child: ChildProcess, closed: Promise<number | null>): Promise<number | null> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), endTimeoutMs);
  try {
    return await closed;
  } finally {
    clearTimeout(timer);
  }
}

let lastId = 0;

async function call(baseUrl: string, method: string, params: unknown, apiKey?: string): Promise<unknown> {
  const id = ++lastId;
  const response = await fetch(`${baseUrl}/rcp/${method}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
  });
  if (response.status !== 200) throw new Error(`${method} was answered with HTTP ${response.status}`);
  const answer = (await response.json()) as Answer;
  if (answer.id !== id) throw new Error(`${method} was answered with another id`);
  if (answer.error === undefined) return answer.result;
  throw new RpcError(answer.error.code, answer.error.message, answer.error.data ?? {});
}

interface Answer {
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Record<string, unknown> };
}
