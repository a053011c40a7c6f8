/** Owns giving up an answer that its reader does not take. */
import type { Socket } from 'node:net';
import type { Clock } from '../clock.ts';

/** When sending counts as stalled, and who is told. */
export interface StallPolicy {
  readonly clock: Clock;
  /** Time without any progress. @unit ms */
  readonly stallMs: number;
  readonly onStalled: () => void;
}

/** Bytes that have left for the kernel: everything written but what still waits here. @unit bytes */
const flushedBytes = (socket: Socket) => socket.bytesWritten - socket.writableLength;

/** Destroys a connection once nothing of what it sends has left for `stallMs`, until the returned function is called. */
export function watchSending(socket: Socket, policy: StallPolicy): () => void {
  const { clock, stallMs, onStalled } = policy;
  let cancel: () => void = () => undefined;
  const lookLater = (flushedBefore: number) => {
    cancel = clock.after(stallMs, () => {
      const flushed = flushedBytes(socket);
      // Where nothing waits in the socket, the caller waits for us.
      if (flushed !== flushedBefore || socket.writableLength === 0) {
        lookLater(flushed);
        return;
      }
      onStalled();
      socket.destroy();
    });
  };
  lookLater(flushedBytes(socket));
  return () => {
    cancel();
  };
}
