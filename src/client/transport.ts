/** Owns what every way to a server has in common: one request, one answer. */
import { errorOf, RcpError, type RcpErrorData } from './error.ts';

/** A method and what it is given. */
export interface Request {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Time that the server may take; Infinity leaves it to the server. @unit ms */
  readonly deadlineMs: number;
  /** Told the part of the work that is done, from 0 to 1, where the server says so. */
  readonly onProgress: ((progress: number) => void) | null;
}

/** The result of a call: an object whose members depend on the method. */
export type Result = Record<string, unknown>;

/** One way to one server. It makes one attempt of a request and repeats nothing. */
export interface Transport {
  /** For messages. */
  readonly address: string;
  /** The answer to `info`, or to a handshake that says the same. */
  open(signal: AbortSignal): Promise<Result>;
  /**
   * @throws RcpError; the signal's reason as soon as it aborts, and then the server is told to stop
   */
  send(request: Request, signal: AbortSignal): Promise<Result>;
  close(): Promise<void>;
}

/** Largest answer that is read, unless the caller says another. @unit bytes */
export const defaultMaxAnswerBytes = 268_435_456;

/** The text of a request frame. */
export function frameOf(id: number, request: Request): string {
  const { method, params, deadlineMs, onProgress } = request;
  const meta = {
    ...(Number.isFinite(deadlineMs) && { deadlineMs: Math.max(1, Math.round(deadlineMs)) }),
    ...(onProgress !== null && { progressToken: id }),
  };
  const all = Object.keys(meta).length === 0 ? params : { ...params, _meta: meta };
  return JSON.stringify({ jsonrpc: '2.0', id, method, params: all });
}

/** The value of a JSON text; undefined where it is none, as one that was cut. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** An object that came from a server, or nothing. */
export const frameIn = (value: unknown): Result | null => (isObject(value) ? value : null);

/** The object in a text that came from a server, or nothing. */
export const parseFrame = (text: string): Result | null => frameIn(parseJson(text));

/**
 * The result in an answer.
 * @throws RcpError in it; internal where it is neither
 */
export function resultOf({ result, error }: Result, address: string): Result {
  if (isObject(result)) return result;
  throw errorIn(error, address);
}

/** The error in an answer; internal where it is not as RCP defines it. */
export function errorIn(error: unknown, address: string): RcpError {
  if (!isObject(error) || typeof error['code'] !== 'number') {
    return errorOf('internal', `${address}: the answer is neither a result nor an error`);
  }
  const { code, message, data } = error;
  const known: RcpErrorData = isObject(data) ? data : {};
  const retryable = known['retryable'];
  const text = typeof message === 'string' ? message : 'no message';
  return new RcpError(code, text, {
    data: known,
    ...(typeof retryable === 'boolean' && { retryable }),
  });
}

/** What a progress notification says, or null where the frame is none. */
export function progressOf(frame: Result): { readonly token: unknown; readonly progress: number } | null {
  const { method, params } = frame;
  if (method !== 'notifications/progress' || !isObject(params)) return null;
  const { progressToken: token, progress } = params;
  return typeof progress === 'number' ? { token, progress } : null;
}

/** An answer that is larger than the client reads. */
export const oversizedError = (address: string, maxBytes: number): RcpError =>
  errorOf('tooLarge', `${address}: the answer is over ${maxBytes} bytes`, {
    data: { limit: maxBytes },
    retryable: false,
  });

const isObject = (value: unknown): value is Result =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
