/** Owns which connections are open and what they carry. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { StallPolicy } from './stall.ts';
import { watchSending } from './stall.ts';
import { cutUpload } from './upload.ts';

/** The open connections of one server. */
export interface Connections {
  /** From now on every answer that has not begun says that its connection ends. */
  announceClose(): void;
  /** Ends those without a request that was accepted; one whose body is still on its way is refused first. */
  closeIdle(): void;
  /** Ends all. */
  closeAll(): void;
}

/**
 * How long what is still being uploaded is read away once its answer has left: a connection that is closed over unread
 * bytes is reset, and the answer lost.
 * @unit ms
 */
export const lingerMs = 5000;

/** Knows which connections carry a request, because Node does not count one that has sent nothing yet as idle. */
export function trackConnections(server: Server | SecureServer, stall: StallPolicy): Connections {
  const running = new Map<Socket, Set<ServerResponse>>();
  const endWatches = new Map<Socket, () => void>();
  /** The last request of each connection. */
  const uploads = new WeakMap<Socket, IncomingMessage>();
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
  const handshakes = new Map<string, Socket>();
  const track = (socket: Socket) => {
    running.set(socket, new Set());
    let cancelLinger: (() => void) | null = null;
    socket.once('close', () => {
      running.delete(socket);
      endWatch(socket);
      cancelLinger?.();
    });
    const destroySoon = socket.destroySoon.bind(socket);
    // How Node ends a connection once its last answer is written.
    socket.destroySoon = () => {
      const upload = uploads.get(socket);
      if (upload === undefined || upload.complete || socket.destroyed) {
        destroySoon();
        return;
      }
      if (cancelLinger !== null) return;
      socket.end();
      cancelLinger = stall.clock.after(lingerMs, destroySoon);
      upload.once('end', destroySoon);
      upload.resume();
    };
  };
  if (isSecure(server)) {
    server.on('connection', (socket: Socket) => {
      const peer = peerOf(socket);
      handshakes.set(peer, socket);
      socket.once('close', () => {
        if (handshakes.get(peer) === socket) handshakes.delete(peer);
      });
    });
    server.on('secureConnection', (socket) => {
      handshakes.delete(peerOf(socket));
      track(socket);
    });
  } else server.on('connection', track);
  server.prependListener('request', (incoming, response) => {
    const { socket, headers } = incoming;
    uploads.set(socket, incoming);
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
        const isAnswered = [...responses].some(({ req, headersSent }) => req.complete || headersSent || cutUpload(req));
        if (!isAnswered) socket.destroy();
      }
      for (const socket of handshakes.values()) socket.destroy();
    },
    closeAll() {
      server.closeAllConnections();
      for (const socket of handshakes.values()) socket.destroy();
    },
  };
}

/** Whether a server speaks TLS. */
export const isSecure = (server: Server | SecureServer): server is SecureServer => 'setSecureContext' in server;

/** What a connection and the encrypted one that is made of it have in common. */
const peerOf = ({ localAddress, localPort, remoteAddress, remotePort }: Socket): string =>
  [localAddress, localPort, remoteAddress, remotePort].join(' ');
