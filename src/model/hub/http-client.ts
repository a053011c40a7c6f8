/** Owns requests over HTTP: proxies, redirects, who is given a secret, and the patience with a silent server. */
import { request as requestHttp } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Clock } from '../../clock.ts';
import { connectionFault, lasting, passing } from './fault.ts';
import type { HubFault, RefusedAnswer } from './fault.ts';
import type { HubLimits } from './limits.ts';
import { createRoutes } from './proxy.ts';
import type { ProxySettings } from './proxy.ts';

/** How a server is reached. */
export interface HttpConnection extends ProxySettings {
  /** Address whose origin alone is given the authorization. */
  readonly endpoint: string;
  /** Value of the header `authorization`; null for none. */
  readonly authorization: string | null;
}

/** An answer whose status is a success. */
export interface HttpResponse {
  readonly status: number;
  /** Address that answered, without its query, which may hold a signature. */
  readonly address: string;
  header(name: string): string | null;
  /** Ends with a HubFault where the connection breaks or falls silent. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Requests to one server, and to where it redirects. */
export interface HttpClient {
  /**
   * The answer to a GET, redirects followed. Its body must be read or left by `break`.
   * Throws a HubFault for everything else; the one for a refusal is what `faultOf` makes of it.
   */
  get(
    url: string,
    faultOf: (refused: RefusedAnswer) => HubFault,
    headers?: Readonly<Record<string, string>>,
  ): Promise<HttpResponse>;
  /** Ends every connection. */
  close(): void;
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const addressOf = ({ origin, pathname }: URL): string => `${origin}${pathname}`;

/** The first value of a header; null where it is missing. */
function headerOf({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** The pause that `Retry-After` asks for, given as seconds or as a date; null where it asks for none. */
export function retryAfterMs(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const ms = /^\d+$/u.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

/**
 * Where a redirect leads.
 * @throws HubFault for one that leads away from an encrypted connection, or nowhere
 */
export function redirectTarget(from: URL, location: string | null): URL {
  if (location === null || !URL.canParse(location, from.href)) throw lasting(`${addressOf(from)} redirects nowhere`);
  const target = new URL(location, from.href);
  const isAllowed = target.protocol === 'https:' || (target.protocol === 'http:' && from.protocol === 'http:');
  if (!isAllowed)
    throw lasting(`${addressOf(from)} redirects to an address that is not encrypted (${addressOf(target)})`);
  return target;
}

/** A watch over one connection: aborts it when nothing was heard for too long. */
function watchSilence(clock: Clock, stallMs: number, address: string) {
  const controller = new AbortController();
  const fault = passing(`${address}: sent nothing for ${String(stallMs / 1000)} s`);
  const start = () =>
    clock.after(stallMs, () => {
      controller.abort(fault);
    });
  let cancel = start();
  return {
    signal: controller.signal,
    heard(): void {
      cancel();
      cancel = start();
    },
    end(): void {
      cancel();
    },
    faultOf: (error: unknown) => (controller.signal.aborted ? fault : connectionFault(error, address)),
  };
}

type Watch = ReturnType<typeof watchSilence>;

async function* readBody(response: IncomingMessage, watch: Watch): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response) {
      watch.heard();
      yield chunk as Uint8Array;
    }
  } catch (error) {
    throw watch.faultOf(error);
  } finally {
    watch.end();
  }
}

/** A client for one server. */
export function createHttpClient(connection: HttpConnection, clock: Clock, limits: HubLimits): HttpClient {
  const routes = createRoutes(connection);
  const endpointOrigin = new URL(connection.endpoint).origin;

  function headersFor(url: URL, headers: Readonly<Record<string, string>>): Record<string, string> {
    // Bytes on the way are the bytes of the file, so that sizes and ranges mean what they say.
    const always = { ...headers, 'accept-encoding': 'identity', 'user-agent': 'trivec' };
    const { authorization } = connection;
    return authorization !== null && url.origin === endpointOrigin ? { ...always, authorization } : always;
  }

  function refusedAnswerOf(url: URL, response: IncomingMessage): RefusedAnswer {
    return {
      status: response.statusCode ?? 0,
      errorCode: headerOf(response, 'x-error-code'),
      retryAfterMs: retryAfterMs(headerOf(response, 'retry-after'), Date.now()),
      address: addressOf(url),
      isEndpoint: url.origin === endpointOrigin,
    };
  }

  function open(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<IncomingMessage> {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    return new Promise((resolve, reject) => {
      const request = send(url, { agent: routes.agentFor(url), headers: headersFor(url, headers), signal });
      request.once('response', (response) => {
        // A body that is left early ends with an error that nobody waits for.
        response.on('error', () => undefined);
        resolve(response);
      });
      // Stays for what comes after the answer began, which the body tells.
      request.on('error', reject);
      request.end();
    });
  }

  async function send(url: URL, headers: Readonly<Record<string, string>>, watch: Watch): Promise<IncomingMessage> {
    try {
      return await open(url, headers, watch.signal);
    } catch (error) {
      watch.end();
      throw watch.faultOf(error);
    }
  }

  return {
    async get(address, faultOf, headers = {}) {
      let url = new URL(address);
      for (let redirects = 0; redirects <= limits.maxRedirects; redirects += 1) {
        const watch = watchSilence(clock, limits.stallMs, addressOf(url));
        const response = await send(url, headers, watch);
        const { statusCode = 0 } = response;
        if (statusCode >= 200 && statusCode < 300) {
          return {
            status: statusCode,
            address: addressOf(url),
            header: (name) => headerOf(response, name),
            body: readBody(response, watch),
          };
        }
        watch.end();
        response.destroy();
        if (!redirectStatuses.has(statusCode)) throw faultOf(refusedAnswerOf(url, response));
        url = redirectTarget(url, headerOf(response, 'location'));
      }
      throw lasting(`${address} redirects more than ${String(limits.maxRedirects)} times`);
    },
    close: () => {
      routes.close();
    },
  };
}

/** The whole body as text. Throws a HubFault for one beyond the bound. */
export async function readText({ body, address }: HttpResponse, limits: HubLimits): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > limits.maxAnswerBytes)
      throw lasting(`${address} answers more than ${String(limits.maxAnswerBytes)} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
