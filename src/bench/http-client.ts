/** Owns an HTTP client that costs as little as possible: kept connections, bodies as they came. */
import * as http from 'node:http';
import * as https from 'node:https';

/** Longest body that is kept; a list of 100,000 vectors is below it. @unit bytes */
const maxAnswerBytes = 1_073_741_824;

/** An answer, whatever its status. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
  /** From the call to the last byte. @unit ms */
  readonly elapsedMs: number;
}

/** A client of one server. Each promise rejects where no complete answer comes in time. */
export interface HttpClient {
  post(path: string, text: string): Promise<HttpAnswer>;
  get(path: string): Promise<HttpAnswer>;
  /** Ends every connection, and with it what is under way. */
  close(): void;
}

/** A client with up to `maxConnections` connections to the server of a URL, of which only the origin counts. */
export function createHttpClient(
  baseUrl: string,
  options: {
    readonly maxConnections: number;
    /** @unit ms */
    readonly timeoutMs: number;
    readonly headers?: Readonly<Record<string, string>>;
  },
): HttpClient {
  const { maxConnections, timeoutMs, headers = {} } = options;
  const { hostname, port, protocol } = new URL(baseUrl);
  const { Agent, request } = protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: maxConnections, noDelay: true });
  // Brackets of an IPv6 address belong to the URL, not to the name.
  const place = { agent, hostname: hostname.replace(/^\[(.*)\]$/u, '$1'), port };

  const call = (method: string, path: string, body: Buffer | null): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const content = body === null ? {} : { 'content-type': 'application/json', 'content-length': body.length };
      const startMs = performance.now();
      const sent = request({ ...place, method, path, headers: { ...headers, ...content } }, (response) => {
        const parts: Buffer[] = [];
        let bytes = 0;
        response.on('data', (part: Buffer) => {
          parts.push(part);
          bytes += part.length;
          if (bytes > maxAnswerBytes) sent.destroy(new Error(`the answer is longer than ${maxAnswerBytes} bytes`));
        });
        response.on('error', reject);
        response.on('end', () => {
          const elapsedMs = performance.now() - startMs;
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts), elapsedMs });
        });
      });
      const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
      sent.on('close', () => {
        clearTimeout(timer);
        // Where everything went well the promise is settled already.
        reject(new Error('the connection ended before the answer did'));
      });
      sent.on('error', reject);
      sent.end(body ?? undefined);
    });

  return {
    post: (path, text) => call('POST', path, Buffer.from(text)),
    get: (path) => call('GET', path, null),
    close() {
      agent.destroy();
    },
  };
}
