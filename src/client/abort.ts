/** Owns being told that a signal aborts: one listener on the signal, however many want to know. */

const listenersOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `listener` once when the signal aborts; what it gives back ends that. Long lists wait for one signal with every
 * request, and Node warns of a leak where each of them listens for itself.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const known = listenersOf.get(signal);
  const listeners = known ?? new Set();
  listeners.add(listener);
  if (known === undefined) {
    listenersOf.set(signal, listeners);
    signal.addEventListener('abort', tellAll, { once: true });
  }
  return () => {
    if (!listeners.delete(listener) || listeners.size > 0 || listenersOf.get(signal) !== listeners) return;
    listenersOf.delete(signal);
    signal.removeEventListener('abort', tellAll);
  };
}

function tellAll(this: AbortSignal): void {
  const listeners = listenersOf.get(this) ?? [];
  listenersOf.delete(this);
  for (const listener of listeners) listener();
}
