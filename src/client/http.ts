/** Owns requests over HTTP by `fetch`: what is sent, and whether the answer is one to it. */
import { readAddress, type Address } from './address.ts';
import { answerInStream, chunksOf, isAnswer, isAnswerTo, readAll } from './body.ts';
import { abortErrorOf, errorOf, RcpError } from './error.ts';
import { cutAnswer, foreignAnswer, lostConnection } from './http-failure.ts';
import { frameIn, frameOf, parseJson, resultOf, type Request, type Result, type Transport } from './transport.ts';

/** How a server is reached over HTTP. */
export interface HttpTransportOptions {
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly fetch?: typeof fetch | undefined;
  readonly maxAnswerBytes: number;
}

/**
 * What goes with every request.
 * @throws TypeError where the key or a header holds what no header may, or two of them claim `Authorization`; it never
 *   holds a value
 */
function headersOf(
  { headers: given = {}, apiKey }: HttpTransportOptions,
  { authorization }: Address,
): [string, string][] {
  const headers = new Headers();
  const put = (what: string, name: string, value: string) => {
    try {
      headers.set(name, value);
    } catch {
      throw new TypeError(`${what}: holds a character that no header of HTTP may`);
    }
  };
  for (const [name, value] of Object.entries(given)) put(`headers: ${name}`, name, value);
  if (authorization !== null) {
    const other = apiKey !== undefined ? 'apiKey' : headers.has('authorization') ? 'headers: authorization' : null;
    if (other !== null) {
      throw new TypeError(`${other}, and user name and password in the address: only one can be sent as Authorization`);
    }
    headers.set('authorization', authorization);
  }
  if (apiKey !== undefined) put('apiKey', 'authorization', `Bearer ${apiKey}`);
  headers.set('content-type', 'application/json');
  headers.delete('accept');
  return [...headers];
}

/** A way to the server at this address. */
export function createHttpTransport(target: string | URL, options: HttpTransportOptions): Transport {
  const parts = readAddress(target);
  const { base: address, query } = parts;
  const { maxAnswerBytes } = options;
  const headers = headersOf(options, parts);
  // Called without a receiver, as browsers want it.
  const send: typeof fetch = options.fetch ?? ((...given) => globalThis.fetch(...given));
  let lastId = 0;

  /** The frame in a response, or null where it holds none. */
  const readAnswer = async (response: Response, id: number, request: Request): Promise<Result | null> => {
    const { ok, status } = response;
    const type = response.headers.get('content-type') ?? '';
    const chunks = chunksOf(response, maxAnswerBytes, address);
    if (type.startsWith('text/event-stream')) {
      const answer = await answerInStream(chunks, id, request);
      if (answer === null && ok) throw cutAnswer(address, status);
      return answer;
    }
    const value = parseJson(await readAll(chunks));
    // Where no length is announced, a connection that is cut looks like the end.
    if (ok && type.startsWith('application/json') && value === undefined) throw cutAnswer(address, status);
    return frameIn(value);
  };

  const post = async (request: Request, signal: AbortSignal): Promise<Result> => {
    const id = ++lastId;
    const accept = request.onProgress === null ? 'application/json' : 'application/json, text/event-stream';
    const response = await send(`${address}/${request.method}${query}`, {
      method: 'POST',
      headers: [...headers, ['accept', accept]],
      body: frameOf(id, request),
      signal,
    });
    const frame = await readAnswer(response, id, request);
    if (frame === null || !isAnswer(frame)) throw foreignAnswer(response, address);
    if (!isAnswerTo(frame, id)) throw errorOf('internal', `${address}: the answer belongs to another request`);
    return resultOf(frame, address);
  };

  const attempt = async (request: Request, signal: AbortSignal): Promise<Result> => {
    try {
      return await post(request, signal);
    } catch (error) {
      // The aborted request is closed, and the server stops working on it.
      if (signal.aborted) throw abortErrorOf(signal);
      if (error instanceof RcpError) throw error;
      throw lostConnection(address, error);
    }
  };

  return {
    address,
    open: (signal) => attempt({ method: 'info', params: {}, deadlineMs: Infinity, onProgress: null }, signal),
    send: attempt,
    close: () => Promise.resolve(),
  };
}
