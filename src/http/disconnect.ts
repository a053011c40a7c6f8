/** Owns noticing that a caller is gone. */
import type { Socket } from 'node:net';

const controllersOf = new WeakMap<Socket, Set<AbortController>>();

/**
 * A signal that aborts when the connection closes, until `release` is called. One listener serves all requests of a
 * connection, also those that wait behind another one on it and whose response has no socket yet.
 */
export function watchConnection(socket: Socket): { readonly signal: AbortSignal; release(): void } {
  const controllers = controllersOf.get(socket) ?? new Set<AbortController>();
  if (!controllersOf.has(socket)) {
    controllersOf.set(socket, controllers);
    socket.once('close', () => {
      for (const controller of controllers) controller.abort();
    });
  }
  const controller = new AbortController();
  controllers.add(controller);
  if (socket.destroyed) controller.abort();
  return {
    signal: controller.signal,
    release: () => {
      controllers.delete(controller);
    },
  };
}
