/** Owns reading a request body: counted while it streams, discarded past the limit, bounded in time. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';
import { isHeld, onUploadCut, startUpload } from './upload.ts';

/** How a body is read. */
export interface BodyLimits {
  /** Longest body. @unit bytes */
  readonly maxBytes: number;
  /** How many of its first bytes are kept; the rest is only counted. @unit bytes */
  readonly keptBytes: number;
  /** False where the answer is known whatever the body: a sender that waits for leave to send it gets none. */
  readonly isWanted: boolean;
  /** Time from the head of the request to the last byte of its body. @unit ms */
  readonly timeoutMs: number;
  /** Claims memory for what is kept; false where there is none. */
  readonly claim: (bytes: number) => boolean;
}

/**
 * What became of a body; in the first three cases it has been read to its end, unless it passed the drain bound or its
 * sender waited for leave.
 */
export type BodyOutcome =
  | { readonly kind: 'complete'; readonly bytes: Buffer }
  | { readonly kind: 'tooLarge' }
  | { readonly kind: 'crowded' }
  /** The server leaves; what had come by then. */
  | { readonly kind: 'cut'; readonly bytes: Buffer }
  /** Its sender waited for leave and got none. */
  | { readonly kind: 'unsent' }
  | { readonly kind: 'timedOut' }
  | { readonly kind: 'gone' };

/**
 * How far an over-long upload is read on, so that its sender gets the answer instead of a reset.
 * @unit bytes
 */
export const maxDrainBytes = (maxBytes: number): number => Math.max(67_108_864, 4 * maxBytes);

/** Reads a body to its end, keeping at most `keptBytes`; never rejects. */
export function readBody(incoming: IncomingMessage, limits: BodyLimits, clock: Clock): Promise<BodyOutcome> {
  return new Promise((resolve) => {
    let totalBytes = 0;
    let isTooLarge = Number(incoming.headers['content-length'] ?? 0) > limits.maxBytes;
    if (isHeld(incoming)) {
      if (isTooLarge || !limits.isWanted) {
        resolve({ kind: isTooLarge ? 'tooLarge' : 'unsent' });
        return;
      }
      startUpload(incoming);
    }
    let kept = Buffer.alloc(0);
    let keptLength = 0;
    let isCrowded = false;

    // One growing buffer: a list of one-byte chunks would cost a hundred times what it holds.
    const keep = (chunk: Buffer) => {
      const part = chunk.subarray(0, Math.max(0, limits.keptBytes - keptLength));
      if (keptLength + part.length > kept.length) {
        const size = Math.min(limits.keptBytes, Math.max(keptLength + part.length, 2 * kept.length));
        isCrowded = !limits.claim(size - kept.length);
        if (isCrowded) return;
        const grown = Buffer.allocUnsafe(size);
        kept.copy(grown, 0, 0, keptLength);
        kept = grown;
      }
      part.copy(kept, keptLength);
      keptLength += part.length;
    };

    const settle = (outcome: BodyOutcome) => {
      cancelTimer();
      forgetCut();
      incoming.off('data', onData).off('end', onEnd).off('close', onClose);
      resolve(outcome);
    };
    const onData = (chunk: Buffer) => {
      totalBytes += chunk.length;
      isTooLarge ||= totalBytes > limits.maxBytes;
      if (!isTooLarge && !isCrowded) keep(chunk);
      if (!isTooLarge && !isCrowded) return;
      kept = Buffer.alloc(0);
      if (totalBytes > maxDrainBytes(limits.maxBytes)) settle({ kind: 'tooLarge' });
    };
    const onEnd = () => {
      if (isTooLarge) settle({ kind: 'tooLarge' });
      else if (isCrowded) settle({ kind: 'crowded' });
      else settle({ kind: 'complete', bytes: kept.subarray(0, keptLength) });
    };
    const onClose = () => {
      settle({ kind: 'gone' });
    };
    const cancelTimer = clock.after(limits.timeoutMs, () => {
      settle({ kind: 'timedOut' });
    });
    const forgetCut = onUploadCut(incoming, () => {
      settle({ kind: 'cut', bytes: kept.subarray(0, keptLength) });
    });
    incoming.on('error', () => undefined);
    incoming.on('data', onData).on('end', onEnd).on('close', onClose);
  });
}

/** True when the body is packed in a way that would have to be undone before reading it. */
export function isEncoded(contentEncoding: string | undefined): boolean {
  return (contentEncoding ?? '').split(',').some((name) => !['', 'identity'].includes(name.trim().toLowerCase()));
}

/** Without state between bodies: each is decoded whole. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The text of a body without one leading byte order mark, or null when the bytes are not UTF-8. */
export function decodeBody(bytes: Buffer): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}
