/** Owns the listening socket: its time and size limits, and its orderly end. */
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Clock } from '../clock.ts';
import { ConfigurationError } from '../errors.ts';
import type { HttpApp } from './app.ts';
import type { StallPolicy } from './stall.ts';
import { watchSending } from './stall.ts';

/** What a listener needs. */
export interface ListenOptions {
  readonly app: HttpApp;
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly clock: Clock;
  /** Told of every answer that was given up because it made no progress. */
  readonly onStalled: () => void;
  readonly limits: {
    /** Connections above it are closed at once. */
    readonly maxConnections: number;
    /** Longest request head. @unit bytes */
    readonly headerBytes: number;
    /** Time for a request head to arrive. @unit ms */
    readonly headersTimeoutMs: number;
    /** Time for a body to arrive; the routes enforce it, the listener backs them up. @unit ms */
    readonly bodyTimeoutMs: number;
    /** Time without any progress after which an answer that is being sent is given up. @unit ms */
    readonly answerStallMs: number;
  };
}

/** A bound listener. */
export interface Listener {
  /** The port that was really bound. */
  readonly port: number;
  /** Where it can be reached, such as `http://127.0.0.1:8000`. */
  readonly url: string;
  /**
   * After a short grace stops accepting and closes connections without a request; lets running requests finish for
   * `drainMs`, then cuts them.
   * Resolves when no connection is left; later calls wait for the first one.
   */
  close(options: { drainMs: number }): Promise<void>;
}

/** Idle time of a kept connection: above the 60 s that proxies commonly keep theirs. @unit ms */
export const keepAliveTimeoutMs = 75_000;
/**
 * Time between the decision to close and the closing of the socket. What callers had sent by then lies in buffers of the
 * kernel: it is still read and answered, instead of ending in a reset that says nothing.
 * @unit ms
 */
export const closeGraceMs = 100;
/** How often Node looks for connections whose head or body is overdue. @unit ms */
const overdueCheckIntervalMs = 1000;
/** Added to the sum of the two limits, so that the route's own answer comes first. @unit ms */
const backstopMarginMs = 5000;

const bindFaults: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is already in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'the address does not belong to this machine',
  ENOTFOUND: 'the host name is unknown',
};

const addressOf = (host: string, port: number) => `${host.includes(':') ? `[${host}]` : host}:${String(port)}`;

/**
 * Binds and serves.
 * @throws ConfigurationError when the address cannot be bound; it names host and port.
 */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { app, host, port, clock, limits, onStalled } = options;
  const server = createAdaptorServer({
    fetch: app.fetch,
    // Stands in for every `Host`: the routes judge the real one.
    hostname: 'localhost',
    overrideGlobalObjects: false,
    autoCleanupIncoming: false,
    serverOptions: {
      keepAliveTimeout: keepAliveTimeoutMs,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.headersTimeoutMs + limits.bodyTimeoutMs + backstopMarginMs,
      maxHeaderSize: limits.headerBytes,
      connectionsCheckingInterval: overdueCheckIntervalMs,
    },
  }) as Server;
  server.maxConnections = limits.maxConnections;
  // Node counts a connection whose answer is ended but not yet sent as idle, and would cut it; ours are tracked.
  server.closeIdleConnections = () => undefined;
  const connections = trackConnections(server, { clock, stallMs: limits.answerStallMs, onStalled });
  await bind(server, host, port);
  const bound = server.address() as AddressInfo;

  let closed: Promise<void> | null = null;
  return {
    port: bound.port,
    url: `http://${addressOf(host, bound.port)}`,
    close({ drainMs }) {
      closed ??= new Promise((resolve) => {
        connections.announceClose();
        const cancelCut = clock.after(drainMs + closeGraceMs, () => {
          server.closeAllConnections();
        });
        clock.after(closeGraceMs, () => {
          server.close(() => {
            cancelCut();
            resolve();
          });
          connections.closeIdle();
        });
      });
      return closed;
    },
  };
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const fault = bindFaults[error.code ?? ''] ?? error.message;
      reject(new ConfigurationError([`cannot listen on ${addressOf(host, port)}: ${fault}`]));
    });
    server.listen({ port, host }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}

/** Knows which connections carry a request, because Node does not count one that has sent nothing yet as idle. */
function trackConnections(server: Server, stall: StallPolicy): { announceClose(): void; closeIdle(): void } {
  const running = new Map<Socket, Set<ServerResponse>>();
  const endWatches = new Map<Socket, () => void>();
  let isClosing = false;
  const closeAfter = (response: ServerResponse) => {
    if (!response.headersSent) response.setHeader('Connection', 'close');
  };
  const watch = (socket: Socket) => {
    if (!endWatches.has(socket) && !socket.destroyed) endWatches.set(socket, watchSending(socket, stall));
  };
  const endWatch = (socket: Socket) => {
    endWatches.get(socket)?.();
    endWatches.delete(socket);
  };
  server.on('connection', (socket) => {
    running.set(socket, new Set());
    socket.once('close', () => {
      running.delete(socket);
      endWatch(socket);
    });
  });
  server.prependListener('request', ({ socket, headers }, response) => {
    delete headers.host;
    const responses = running.get(socket);
    responses?.add(response);
    if (isClosing) closeAfter(response);
    // A large answer is piped; any other is handed over whole.
    response.once('pipe', () => {
      watch(socket);
    });
    response.once('prefinish', () => {
      watch(socket);
    });
    response.once('close', () => {
      responses?.delete(response);
      if (responses?.size !== 0) return;
      endWatch(socket);
      // A response whose head had already promised to keep the connection.
      if (isClosing) socket.destroySoon();
    });
  });
  return {
    announceClose() {
      isClosing = true;
      for (const responses of running.values()) responses.forEach(closeAfter);
    },
    closeIdle() {
      for (const [socket, responses] of running) {
        // A request whose body is still on its way has not been accepted.
        if ([...responses].every(({ req }) => !req.complete)) socket.destroy();
      }
    },
  };
}
