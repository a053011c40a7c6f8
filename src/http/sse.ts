/** Owns an event stream: `data:` frames only, the answer last. */
import type { ServerResponse } from 'node:http';
import type { Reply } from '../rpc/service.ts';
import { answerOf, endInPieces, retryAfterHeader, writeAnswer } from './answer.ts';

/** One event stream, opened by its first frame. */
export interface EventStream {
  /** Sends a progress frame at once, or drops it while the reader is too far behind. */
  readonly notify: (frame: string) => void;
  /** Sends the answer and ends the stream; a reply without a body becomes 204. */
  finish(reply: Reply): void;
}

/**
 * Unread bytes above which progress frames are dropped.
 * @unit bytes
 */
export const maxUnreadBytes = 262_144;

const frameStart = Buffer.from('data: ');
const frameEnd = Buffer.from('\n\n');

/** A stream over a response whose head has not been sent; nothing is written once the caller is gone. */
export function createEventStream(outgoing: ServerResponse): EventStream {
  const open = (reply: Reply | null) => {
    if (outgoing.headersSent) return;
    outgoing.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-cache',
      'X-Accel-Buffering': 'no',
      ...(reply === null ? {} : retryAfterHeader(reply)),
    });
  };
  let isFinished = false;
  const isWritable = () => !isFinished && !outgoing.destroyed;
  return {
    notify(frame) {
      if (!isWritable() || outgoing.writableLength > maxUnreadBytes) return;
      open(null);
      outgoing.write(`data: ${frame}\n\n`);
    },
    finish(reply) {
      if (!isWritable()) return;
      isFinished = true;
      if (reply.body === null) {
        if (outgoing.headersSent) outgoing.end();
        else writeAnswer(outgoing, answerOf(reply));
        return;
      }
      open(reply);
      endInPieces(outgoing, Buffer.concat([frameStart, reply.body, frameEnd]));
    },
  };
}
