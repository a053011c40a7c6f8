/** Owns a client over HTTP: parsed exchanges, and connections on which every byte is the test's own. */
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createFrameRecord, type RcpClient } from './client.ts';
import type { TestServer } from './server.ts';

/** One HTTP answer. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Headers to send; one that is null is left out. */
export type HttpHeaders = Readonly<Record<string, string | null>>;

/** A connection on which the test writes the bytes. */
export interface RawConnection {
  readonly socket: Socket;
  /** Everything received once the server has ended the connection. */
  readonly ended: Promise<string>;
}

/** A client that can also choose path, headers and bytes. */
export interface HttpClient extends RcpClient {
  readonly transport: 'http';
  readonly port: number;
  exchange(method: string, path: string, body?: string | Buffer, headers?: HttpHeaders): Promise<HttpAnswer>;
  post(path: string, body: string | Buffer, headers?: HttpHeaders): Promise<HttpAnswer>;
  /** A connection of its own. */
  open(): Promise<RawConnection>;
  /** Writes these bytes on a connection of their own and reads to its end. */
  exchangeBytes(bytes: string | Buffer): Promise<string>;
}

/** Path that the clients that exist post a frame to; the bare base for one without a plain method. */
function pathOf(frame: string | Buffer): string {
  try {
    const { method } = JSON.parse(frame.toString()) as { method?: unknown };
    if (typeof method === 'string' && /^[A-Za-z]+(\/[a-z]+)?$/.test(method)) return `/rcp/${method}`;
  } catch {
    // Not JSON: no method.
  }
  return '/rcp';
}

/** A client of a server's listener, with a connection pool of its own. */
export async function openHttpClient(server: TestServer): Promise<HttpClient> {
  const { port } = await server.listener();
  const agent = new Agent({ keepAlive: true });
  const record = createFrameRecord();
  const sockets = new Set<Socket>();

  const exchange: HttpClient['exchange'] = (method, path, body = '', headers = {}) =>
    new Promise((resolve, reject) => {
      record.sent(body);
      const bytes = Buffer.from(body);
      const all = { 'Content-Type': 'application/json', 'Content-Length': String(bytes.length), ...headers };
      const sent = Object.entries(all).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
      const outgoing = httpRequest({ host: '127.0.0.1', port, method, path, agent }, (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('end', () => {
          const answer = {
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            body: Buffer.concat(chunks).toString(),
          };
          judge(answer);
          resolve(answer);
        });
        incoming.on('error', reject);
      });
      outgoing.on('error', reject);
      for (const [name, value] of sent) outgoing.setHeader(name, value);
      outgoing.end(bytes);
    });

  /** What holds for every answer, whatever was asked. */
  const judge = ({ status, headers, body }: HttpAnswer) => {
    if (headers['content-encoding'] !== undefined) record.blame('an answer is packed');
    if (headers['content-type'] === 'text/event-stream') {
      for (const text of eventsOf(body)) record.received(text);
      return;
    }
    if (headers['transfer-encoding'] !== undefined) record.blame('a buffered answer is chunked');
    if (status !== 204 && headers['content-length'] !== String(Buffer.byteLength(body)))
      record.blame('no Content-Length');
    if (status >= 500 || (status >= 300 && status < 400)) record.blame(`status ${status}`);
    if (body === '' || !String(headers['content-type']).includes('json')) return;
    if (headers['content-type'] !== 'application/json')
      record.blame(`Content-Type ${headers['content-type'] ?? 'none'}`);
    record.received(body);
  };

  const post: HttpClient['post'] = (path, body, headers) => exchange('POST', path, body, headers);
  const open = () =>
    new Promise<RawConnection>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      sockets.add(socket);
      const chunks: Buffer[] = [];
      socket.on('data', (chunk) => chunks.push(chunk));
      const ended = new Promise<string>((settle) => {
        socket.once('close', () => {
          settle(Buffer.concat(chunks).toString());
        });
      });
      socket.on('error', reject);
      socket.once('connect', () => {
        resolve({ socket, ended });
      });
    });
  return {
    transport: 'http',
    port,
    exchange,
    post,
    open,
    async exchangeBytes(bytes) {
      const { socket, ended } = await open();
      socket.write(bytes);
      return ended;
    },
    async ask(frame) {
      const { status, body } = await post(pathOf(frame), frame);
      if (status !== 200) throw new Error(`status ${status} for ${frame.toString('utf8').slice(0, 300)}`);
      return { text: body, value: JSON.parse(body) as unknown };
    },
    async tell(frame) {
      const { status, body } = await post(pathOf(frame), frame);
      if (status !== 204 || body !== '') throw new Error(`status ${status} and ${body} instead of nothing`);
    },
    problems: () => record.problems,
    async close() {
      agent.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** The texts of an event stream's frames. */
export const eventsOf = (body: string): string[] =>
  body
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.replace(/^data: /, ''));
