/** Owns requests over HTTP by `fetch`: what is sent, and what each kind of answer means. */
import { abortErrorOf, errorOf, RcpError } from './error.ts';
import {
  frameOf,
  oversizedError,
  parseFrame,
  progressOf,
  resultOf,
  type Request,
  type Result,
  type Transport,
} from './transport.ts';

/** How a server is reached over HTTP. */
export interface HttpTransportOptions {
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly fetch?: typeof fetch | undefined;
  readonly maxAnswerBytes: number;
}

/** Statuses by which a server, or a proxy in front of it, asks for patience. */
const busyStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Such as `http://127.0.0.1:8000/rcp` for `http://127.0.0.1:8000`; a path is kept, for servers behind a proxy. */
export function baseUrlOf(target: string | URL): string {
  const url = new URL(target);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError(`${String(target)}: the address of a server begins with http:// or https://`);
  }
  const path = url.pathname.replace(/\/+$/, '');
  return `${url.origin}${path.endsWith('/rcp') ? path : `${path}/rcp`}`;
}

/**
 * What goes with every request.
 * @throws TypeError where the key or a header holds what no header may; it never holds the value
 */
function headersOf(given: Readonly<Record<string, string>> = {}, apiKey: string | undefined): [string, string][] {
  const headers = new Headers();
  const put = (what: string, name: string, value: string) => {
    try {
      headers.set(name, value);
    } catch {
      throw new TypeError(`${what}: holds a character that no header of HTTP may`);
    }
  };
  for (const [name, value] of Object.entries(given)) put(`headers: ${name}`, name, value);
  if (apiKey !== undefined) put('apiKey', 'authorization', `Bearer ${apiKey}`);
  headers.set('content-type', 'application/json');
  headers.delete('accept');
  return [...headers];
}

/** A way to the server at this address. */
export function createHttpTransport(target: string | URL, options: HttpTransportOptions): Transport {
  const address = baseUrlOf(target);
  const { apiKey, maxAnswerBytes } = options;
  const headers = headersOf(options.headers, apiKey);
  // Called without a receiver, as browsers want it.
  const send: typeof fetch = options.fetch ?? ((...given) => globalThis.fetch(...given));
  let lastId = 0;

  const post = async (request: Request, signal: AbortSignal): Promise<Result> => {
    const id = ++lastId;
    const accept = request.onProgress === null ? 'application/json' : 'application/json, text/event-stream';
    const response = await send(`${address}/${request.method}`, {
      method: 'POST',
      headers: [...headers, ['accept', accept]],
      body: frameOf(id, request),
      signal,
    });
    const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
    const chunks = chunksOf(response, maxAnswerBytes, address);
    const frame = isStream ? await lastFrame(chunks, request) : parseFrame((await readAll(chunks)).join(''));
    const isAnswer = frame !== null && ('result' in frame || 'error' in frame);
    if (!isAnswer) throw foreignAnswer(response, address);
    // What could not be read has no id.
    if (frame['id'] !== id && !('error' in frame && frame['id'] === null)) {
      throw errorOf('internal', `${address}: the answer belongs to another request`);
    }
    return resultOf(frame, address);
  };

  const attempt = async (request: Request, signal: AbortSignal): Promise<Result> => {
    try {
      return await post(request, signal);
    } catch (error) {
      // The aborted request is closed, and the server stops working on it.
      if (signal.aborted) throw abortErrorOf(signal);
      if (error instanceof RcpError) throw error;
      throw errorOf('unavailable', `${address}: no connection, or it was lost before the answer`, { cause: error });
    }
  };

  return {
    address,
    open: (signal) => attempt({ method: 'info', params: {}, deadlineMs: Infinity, onProgress: null }, signal),
    send: attempt,
    close: () => Promise.resolve(),
  };
}

/** An answer that no RCP server gave. */
function foreignAnswer({ status, headers }: Response, address: string) {
  const seconds = Number(headers.get('retry-after') ?? NaN);
  const data = { status, ...(seconds >= 0 && { retryAfterMs: seconds * 1000 }) };
  const about = `${address}: HTTP ${status} without an answer of RCP`;
  if (status === 429) return errorOf('overloaded', about, { data });
  // A proxy with a smaller limit than the server's: a list is then cut further.
  if (status === 413) return errorOf('tooLarge', about, { data });
  if (busyStatuses.has(status)) return errorOf('unavailable', about, { data });
  if (status === 401 || status === 403) return errorOf('unauthorized', `${about}: the key or the origin`, { data });
  return errorOf('internal', `${about}; is this the address of a server?`, { data, retryable: false });
}

/** The body as text, piece by piece, never more of it than allowed. */
async function* chunksOf(response: Response, maxBytes: number, address: string): AsyncGenerator<string> {
  if (response.body === null) return;
  const body: ReadableStream<Uint8Array<ArrayBuffer>> = response.body;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let bytes = Number(response.headers.get('content-length') ?? 0) > maxBytes ? Infinity : 0;
  try {
    while (true) {
      if (bytes > maxBytes) throw oversizedError(address, maxBytes);
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
      yield decoder.decode(value, { stream: true });
    }
    yield decoder.decode();
  } finally {
    // Of what was read to its end nothing is left to cancel.
    reader.cancel().catch(() => undefined);
  }
}

async function readAll(chunks: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

/** The answer at the end of an event stream; progress before it is reported as it comes. */
async function lastFrame(chunks: AsyncIterable<string>, request: Request): Promise<Result | null> {
  let answer: Result | null = null;
  let pieces: string[] = [];
  for await (const chunk of chunks) {
    // An answer spans many chunks: they are joined once it is whole.
    const end = chunk.lastIndexOf('\n');
    if (end < 0) {
      pieces.push(chunk);
      continue;
    }
    const lines = [...pieces, chunk.slice(0, end)].join('').split('\n');
    pieces = [chunk.slice(end + 1)];
    for (const line of lines) {
      const frame = line.startsWith('data:') ? parseFrame(line.slice('data:'.length)) : null;
      if (frame === null) continue;
      const progress = progressOf(frame);
      if (progress === null) answer = frame;
      else request.onProgress?.(progress.progress);
    }
  }
  return answer;
}
