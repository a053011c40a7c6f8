/** Owns a caller that repeats what RCP lets it repeat, and keeps count of why. */
import { setTimeout as sleep } from 'node:timers/promises';

/** What a call came to, and how it got there. */
export interface CallReport {
  readonly result: Record<string, unknown>;
  /** Why attempts before the last one gave nothing: a code, an HTTP status or `connection`. */
  readonly retries: readonly string[];
}

/** Codes whose calls may be repeated: the server says that it has not, or will not have, done the work. */
const retryableCodes: ReadonlySet<number> = new Set([-32010, -32011]);
/** Attempts after which a call is lost. */
const maxAttempts = 40;
/** Wait after an attempt that named none. @unit ms */
const defaultWaitMs = 50;
/** Longest wait: tests are short. @unit ms */
const maxWaitMs = 1000;

interface Attempt {
  readonly result: Record<string, unknown> | null;
  readonly reason: string;
  readonly waitMs: number;
}

interface Frame {
  readonly id: unknown;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { retryAfterMs?: number } };
}

let lastId = 0;

/**
 * The result of a call, repeated as often as the protocol allows.
 * @throws Error where the answer is one that may not be repeated, is not an answer to this call, or never comes
 */
export async function callWithRetries(baseUrl: string, method: string, params: unknown): Promise<CallReport> {
  const retries: string[] = [];
  for (let attempts = 0; attempts < maxAttempts; attempts++) {
    const { result, reason, waitMs } = await attempt(baseUrl, method, params);
    if (result !== null) return { result, retries };
    retries.push(reason);
    await sleep(Math.min(waitMs, maxWaitMs));
  }
  throw new Error(`${method} was lost after ${retries.join(', ')}`);
}

async function attempt(baseUrl: string, method: string, params: unknown): Promise<Attempt> {
  const id = ++lastId;
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${baseUrl}/rcp/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
    });
    text = await response.text();
  } catch {
    // Every method only computes: a call whose fate is not known may be made again.
    return { result: null, reason: 'connection', waitMs: defaultWaitMs };
  }
  if (response.status !== 200 && response.status !== 503) throw new Error(`HTTP ${response.status}: ${text}`);
  const frame = JSON.parse(text) as Frame;
  if (response.status === 200 && frame.id !== id)
    throw new Error(`call ${id} was answered with id ${String(frame.id)}`);
  if (frame.result !== undefined) return { result: frame.result, reason: '', waitMs: 0 };
  const { code = 0, message = text, data } = frame.error ?? {};
  if (!retryableCodes.has(code)) throw new Error(`${code}: ${message}`);
  const reason = response.status === 200 ? String(code) : `HTTP ${response.status}`;
  return { result: null, reason, waitMs: data?.retryAfterMs ?? defaultWaitMs };
}
