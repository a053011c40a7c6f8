/** Owns the listening socket: its time and size limits, and its orderly end. */
import type { Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Server as SecureServer } from 'node:https';
import { createAdaptorServer } from '@hono/node-server';
import type { Clock } from '../clock.ts';
import type { HttpApp } from './app.ts';
import { bind } from './bind.ts';
import type { Endpoint } from './bind.ts';
import { isSecure, trackConnections } from './connections.ts';
import type { TlsSource } from './tls.ts';
import { holdUpload } from './upload.ts';

/** What a listener needs. */
export interface ListenOptions {
  readonly app: HttpApp;
  readonly endpoint: Endpoint;
  /** What HTTPS is served with; absent or null for HTTP. */
  readonly tls?: TlsSource | null;
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
  /** The port that was really bound; 0 for a Unix socket. */
  readonly port: number;
  /** Where it can be reached, such as `http://127.0.0.1:8000` or `unix:/run/trivec.sock`. */
  readonly url: string;
  /**
   * After a short grace stops accepting, closes connections without a request and refuses requests whose bodies are still
   * on their way; lets running requests finish for `drainMs`, then cuts them.
   * Resolves when no connection is left; later calls wait for the first one.
   */
  close(options: { drainMs: number }): Promise<void>;
}

/** Idle time of a kept connection: above the 60 to 75 s that balancers commonly keep theirs. @unit ms */
export const keepAliveTimeoutMs = 90_000;
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

/**
 * Binds and serves.
 * @throws ConfigurationError when the address cannot be bound; it names the address.
 */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { app, endpoint, tls = null, clock, limits, onStalled } = options;
  const server = createAdaptorServer({
    fetch: app.fetch,
    // Stands in for every `Host`: the routes judge the real one.
    hostname: 'localhost',
    overrideGlobalObjects: false,
    autoCleanupIncoming: false,
    ...(tls === null ? {} : { createServer: createSecureServer }),
    serverOptions: {
      ...(tls === null ? {} : { ...tls.credentials, handshakeTimeout: limits.headersTimeoutMs }),
      keepAliveTimeout: keepAliveTimeoutMs,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.headersTimeoutMs + limits.bodyTimeoutMs + backstopMarginMs,
      maxHeaderSize: limits.headerBytes,
      connectionsCheckingInterval: overdueCheckIntervalMs,
    },
  }) as Server | SecureServer;
  server.maxConnections = limits.maxConnections;
  // Node counts a connection whose answer is ended but not yet sent as idle, and would cut it; ours are tracked.
  server.closeIdleConnections = () => undefined;
  // Leave to send a body is given by what reads it, once the head of its request was judged.
  server.on('checkContinue', (incoming, outgoing) => {
    // Behind the answers of earlier requests nothing may be written before its turn: its body may have come with it.
    if (outgoing.socket === null) {
      outgoing.once('socket', () => {
        if (!outgoing.headersSent && !incoming.complete) outgoing.writeContinue();
      });
      server.emit('request', incoming, outgoing);
      return;
    }
    const { shouldKeepAlive } = outgoing;
    // Who gets no leave may send all the same, or the next request in the place of the body: nobody could tell.
    outgoing.shouldKeepAlive = false;
    holdUpload(incoming, () => {
      outgoing.shouldKeepAlive = shouldKeepAlive;
      outgoing.writeContinue();
    });
    server.emit('request', incoming, outgoing);
  });
  const connections = trackConnections(server, { clock, stallMs: limits.answerStallMs, onStalled });
  const bound = await bind(server, endpoint);
  // Connections that are open keep the certificate they have seen.
  const endTlsWatch = tls?.watch((credentials) => {
    if (isSecure(server)) server.setSecureContext(credentials);
  });
  const scheme = endpoint.kind === 'unix' ? 'unix:' : tls === null ? 'http://' : 'https://';

  let closed: Promise<void> | null = null;
  return {
    port: bound.port,
    url: `${scheme}${bound.address}`,
    close({ drainMs }) {
      closed ??= new Promise((resolve) => {
        endTlsWatch?.();
        connections.announceClose();
        const cancelCut = clock.after(drainMs + closeGraceMs, () => {
          connections.closeAll();
        });
        clock.after(closeGraceMs, () => {
          server.close(() => {
            cancelCut();
            bound.release();
            resolve();
          });
          connections.closeIdle();
        });
      });
      return closed;
    },
  };
}
