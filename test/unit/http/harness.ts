/** Owns a real listener with a fake service behind it, and a client that sees bytes. */
import { connect, type Socket } from 'node:net';
import { createHttpApp, type HttpAppOptions } from '../../../src/http/app.ts';
import type { Endpoint } from '../../../src/http/bind.ts';
import { createKeyRing, identifyEverybody, type Identify } from '../../../src/http/key-ring.ts';
import { createMemoryBudget } from '../../../src/http/memory-budget.ts';
import { closeGraceMs, listen, type Listener, type ListenOptions } from '../../../src/http/listen.ts';
import type { RefusalReason } from '../../../src/http/refuse.ts';
import type { TlsSource } from '../../../src/http/tls.ts';
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts';
import { createFakeService, newSession, type FakeService } from './fake-service.ts';

export const bodyBytes = 1000;

export interface Harness {
  readonly service: FakeService;
  readonly listener: Listener;
  readonly clock: FakeClock;
  readonly sessionHeaders: (string | undefined)[];
  readonly refused: RefusalReason[];
  readonly errors: unknown[];
  /** A connection; `received` is everything the server has sent so far. */
  open(options?: ConnectionOptions): Promise<RawConnection>;
  /** One request on its own connection, read to the end of the stream. */
  exchange(request: string | Buffer): Promise<HttpAnswer>;
  /** Closes the listener and lets its grace pass; resolves when no connection is left. */
  close(drainMs: number): Promise<void>;
}

export interface ConnectionOptions {
  /** Whether the client goes on when the server has ended its side. */
  readonly allowHalfOpen?: boolean;
}

export interface RawConnection {
  readonly socket: Socket;
  readonly text: () => string;
  /** Resolves when what was received matches. */
  until(pattern: RegExp): Promise<string>;
  /** Resolves with everything when the server has closed. */
  readonly ended: Promise<string>;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export function parseAnswer(text: string): HttpAnswer {
  const [head = '', body = ''] = text.split(/\r\n\r\n([^]*)/);
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Map(
    lines.map((line) => [line.split(':')[0]?.toLowerCase() ?? '', line.replace(/^[^:]*: */, '')]),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, body };
}

/** Lets those in who have one of these keys, without bounds. */
export const onlyWith = (...keys: string[]): Identify =>
  createKeyRing(
    keys.map((key) => ({ key, name: null, limits: {} })),
    {
      clock: createFakeClock(),
      limits: { requestsPerSecond: 0, requestBurst: 0, queuedTokens: 0 },
      onRefused: () => undefined,
      onForgotten: () => undefined,
    },
  ).identify;

/** A request with `Content-Length`; `Connection: close` unless headers say otherwise. */
export function request(
  method: string,
  path: string,
  body: string | Buffer = '',
  headers: Record<string, string> = {},
): Buffer {
  const bytes = Buffer.from(body);
  const all = { Host: '127.0.0.1', Connection: 'close', 'Content-Length': String(bytes.length), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), bytes]);
}

export const post = (path: string, body: string | Buffer = '{}', headers: Record<string, string> = {}): Buffer =>
  request('POST', path, body, headers);

export function rawConnection(port: number, options: ConnectionOptions = {}): Promise<RawConnection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ...options });
    let text = '';
    const watchers = new Set<() => void>();
    const notifyWatchers = () => {
      for (const watcher of watchers) watcher();
    };
    let isClosed = false;
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
      notifyWatchers();
    });
    const ended = new Promise<string>((settle) => {
      socket.once('close', () => {
        isClosed = true;
        settle(text);
        notifyWatchers();
      });
    });
    socket.on('error', reject);
    socket.once('connect', () => {
      resolve({
        socket,
        text: () => text,
        ended,
        until: (pattern) =>
          new Promise((settle, fail) => {
            const look = () => {
              if (pattern.test(text)) settle(text);
              else if (isClosed) fail(new Error(`closed before ${String(pattern)}: ${text}`));
              else return;
              watchers.delete(look);
            };
            watchers.add(look);
            look();
          }),
      });
    });
  });
}

export async function startHarness(
  options: Partial<HttpAppOptions> = {},
  limits: Partial<ListenOptions['limits']> = {},
  tls: TlsSource | null = null,
  endpoint: Endpoint = { kind: 'tcp', host: '127.0.0.1', port: 0 },
): Promise<Harness> {
  const service = createFakeService();
  const clock = createFakeClock();
  const sessionHeaders: (string | undefined)[] = [];
  const refused: RefusalReason[] = [];
  const errors: unknown[] = [];
  const app = createHttpApp({
    service,
    sessions: {
      ofHttp: (header) => {
        sessionHeaders.push(header);
        return newSession();
      },
    },
    readiness: () => ({ isReady: true, reasons: [] }),
    metricsText: () => 'trivec_up 1\n',
    limits: { bodyBytes, bodyTimeoutMs: 10_000 },
    memory: createMemoryBudget(1_000_000),
    identify: identifyEverybody,
    corsOrigins: [],
    allowedHosts: null,
    isLoopbackBind: true,
    metricsOpen: false,
    isDraining: () => false,
    log: { error: (fields) => errors.push(fields['err']) },
    onRefused: (reason) => refused.push(reason),
    clock,
    ...options,
  });
  const listener = await listen({
    app,
    endpoint,
    tls,
    clock,
    onStalled: () => refused.push('stalled'),
    limits: {
      maxConnections: 50,
      headerBytes: 16_384,
      headersTimeoutMs: 10_000,
      bodyTimeoutMs: 10_000,
      answerStallMs: 10_000,
      ...limits,
    },
  });
  const open = (connection?: ConnectionOptions) => rawConnection(listener.port, connection);
  return {
    service,
    listener,
    clock,
    sessionHeaders,
    refused,
    errors,
    open,
    async exchange(bytes) {
      const connection = await open();
      connection.socket.write(bytes);
      return parseAnswer(await connection.ended);
    },
    async close(drainMs) {
      const closed = listener.close({ drainMs });
      await clock.advance(closeGraceMs);
      await closed;
    },
  };
}

/** Starts harnesses and closes them again: call `closeAll` after each test. */
export function createHarnesses(): { start: typeof startHarness; closeAll(): Promise<void> } {
  const started: Harness[] = [];
  return {
    async start(...args) {
      const harness = await startHarness(...args);
      started.push(harness);
      return harness;
    },
    async closeAll() {
      for (const harness of started.splice(0)) {
        await harness.close(0);
      }
    },
  };
}
