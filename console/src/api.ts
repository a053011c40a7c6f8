/** Owns the calls to the server that sent this page. */
import { curlOf } from './curl.ts';
import type { KeyHolder } from './key.ts';

/** A call that gave no result, in words for the user. */
export class CallFailure extends Error {
  override readonly name = 'CallFailure';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Longest wait for what the page asks by itself, and nobody could stop. @unit ms */
const maxLookMs = 5000;

/** The server, seen from this page. A call that is given no signal to stop it ends by itself after a while. */
export interface Api {
  /**
   * The result of one call of RCP.
   * @throws CallFailure
   */
  call(method: string, params: unknown, stop?: AbortSignal): Promise<unknown>;
  /**
   * The same for what the page does by itself: it asks for no key.
   * @throws CallFailure
   */
  look(method: string, params: unknown): Promise<unknown>;
  /**
   * What a path answers to a JSON text, as it came; an empty text where it has nothing to say.
   * @throws CallFailure
   */
  post(path: string, body: string, stop?: AbortSignal): Promise<string>;
  /**
   * What a path answers; asks for no key.
   * @throws CallFailure
   */
  read(path: string): Promise<string>;
  /** Asks for a key; false where none was given. */
  askForKey(): Promise<boolean>;
  /** Calls back whenever a key was given: commands that are shown have to name it from then on. */
  readonly onKey: (listener: () => void) => void;
  /** The command that makes a call. */
  readonly curl: (call: PlannedCall) => string;
}

/** A call before it is made. */
export interface PlannedCall {
  readonly path: string;
  /** The JSON text that is sent; null for a GET. */
  readonly body: string | null;
}

/** The call of a method. */
export const planned = (method: string, params: unknown): PlannedCall & { readonly body: string } => ({
  path: `rcp/${method}`,
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
});

/** An api that asks for the key when the server wants one. */
export function createApi(key: KeyHolder): Api {
  const urlOf = (path: string) => new URL(path, document.baseURI).href;

  const send = async (path: string, body: string | null, stop?: AbortSignal): Promise<Answered> => {
    const held = key.get();
    const headers: Record<string, string> = held === null ? {} : { Authorization: `Bearer ${held}` };
    if (body !== null) headers['Content-Type'] = 'application/json';
    try {
      // For each request anew: who asks again has waited for the user, not for the server.
      const signal = stop ?? AbortSignal.timeout(maxLookMs);
      const method = body === null ? 'GET' : 'POST';
      const response = await fetch(urlOf(path), { method, body, headers, signal, cache: 'no-store' });
      return { status: response.status, isOk: response.ok, text: await response.text() };
    } catch {
      throw new CallFailure(0, stop?.aborted === true ? 'Stopped.' : 'The server does not answer.');
    }
  };

  const post = async (path: string, body: string, stop?: AbortSignal): Promise<string> => {
    for (;;) {
      const held = key.get();
      const response = await send(path, body, stop);
      const hasNewKey = () => key.get() !== held;
      if (response.status === 401 && (hasNewKey() || (await key.ask(held !== null)))) continue;
      return textOf(response);
    }
  };

  return {
    post,
    async call(method, params, stop) {
      const { path, body } = planned(method, params);
      return resultOf(await post(path, body, stop));
    },
    async look(method, params) {
      const { path, body } = planned(method, params);
      return resultOf(textOf(await send(path, body)));
    },
    read: async (path) => textOf(await send(path, null)),
    askForKey: () => key.ask(key.get() !== null),
    onKey: key.onGiven,
    curl: ({ path, body }) => curlOf({ url: urlOf(path), body, hasKey: key.get() !== null }),
  };
}

interface RpcAnswer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

function resultOf(text: string): unknown {
  const { result, error } = JSON.parse(text) as RpcAnswer;
  if (error === undefined) return result;
  throw new CallFailure(200, `${error.message} (${error.code})`);
}

interface Answered {
  readonly status: number;
  readonly isOk: boolean;
  readonly text: string;
}

function textOf({ status, isOk, text }: Answered): string {
  if (isOk) return text;
  throw new CallFailure(status, failureText(status));
}

function failureText(status: number): string {
  if (status === 401) return 'The server needs a key.';
  if (status === 403) {
    return 'The server refuses calls from the address of this page: name its host in --allowed-hosts, or its origin in --cors-origins.';
  }
  return `The server answered with HTTP ${status}.`;
}
