/** Owns what a body on its way can be told from outside: that it may begin, and that nobody waits for its end. */
import type { IncomingMessage } from 'node:http';

const held = new WeakMap<IncomingMessage, () => void>();
const cuts = new WeakMap<IncomingMessage, () => void>();

/** Keeps a sender waiting that has asked for leave (`Expect: 100-continue`); `start` gives it. */
export function holdUpload(incoming: IncomingMessage, start: () => void): void {
  held.set(incoming, start);
}

/** True while the sender waits for leave: its body is not on its way. */
export const isHeld = (incoming: IncomingMessage): boolean => held.has(incoming);

/** Gives leave to a sender that waits for it. */
export function startUpload(incoming: IncomingMessage): void {
  held.get(incoming)?.();
  held.delete(incoming);
}

/** Calls `cut` where the body is cut, until the returned function is called. */
export function onUploadCut(incoming: IncomingMessage, cut: () => void): () => void {
  cuts.set(incoming, cut);
  return () => {
    cuts.delete(incoming);
  };
}

/** Ends the reading of a body that is still on its way, so that its request is answered; false where nobody reads it. */
export function cutUpload(incoming: IncomingMessage): boolean {
  const cut = cuts.get(incoming);
  cut?.();
  return cut !== undefined;
}
