/** Owns the bytes that leave on stdout: one line per frame, nothing else, never more buffered than needed. */
import type { Writable } from 'node:stream';

/** Writes frames to one stream. */
export interface FrameWriter {
  /** Writes an answer as one line; an empty one and any after the reader is gone are dropped. */
  write(frame: Buffer | string): void;
  /** Writes a notification as one line, or drops it while the reader is too far behind to care about progress. */
  notify(frame: string): void;
  /** True while the reader is so far behind that no further frames should be read. */
  isFull(): boolean;
  /** Resolves when everything written so far has been handed over or the reader is gone. */
  flush(): Promise<void>;
}

/** What a writer tells its owner. */
export interface FrameWriterEvents {
  /** The reader has caught up. */
  readonly onDrain: () => void;
  /** Nobody reads any more (EPIPE, closed); called once. */
  readonly onGone: () => void;
}

/**
 * Buffered output above which reading pauses and notifications are dropped.
 * @unit bytes
 */
export const maxBufferedOutputBytes = 1_048_576;

/** A writer over `output`; it keeps listening for errors, so that a late EPIPE never becomes an uncaught exception. */
export function createFrameWriter(output: Writable, events: FrameWriterEvents): FrameWriter {
  let isGone = false;
  const leave = () => {
    if (isGone) return;
    isGone = true;
    events.onGone();
  };
  output.on('error', leave);
  output.on('close', leave);
  output.on('drain', events.onDrain);

  const isFull = () => output.writableLength > maxBufferedOutputBytes;
  const write = (frame: Buffer | string) => {
    if (isGone || frame.length === 0) return;
    output.cork();
    output.write(frame);
    output.write('\n');
    output.uncork();
  };
  return {
    write,
    notify(frame) {
      if (!isFull()) write(frame);
    },
    isFull,
    flush: () =>
      new Promise((resolve) => {
        if (isGone) {
          resolve();
          return;
        }
        output.once('close', resolve);
        // The callback of a write comes after those of all earlier ones, and an empty chunk adds no byte.
        output.write('', () => {
          output.off('close', resolve);
          resolve();
        });
      }),
  };
}
