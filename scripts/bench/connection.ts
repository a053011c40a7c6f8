/** Owns one kept connection that costs next to nothing: what it takes of the cores would be missing to the server. */
import { connect, type Socket } from 'node:net';

/** An answer, whatever its status. */
export interface LeanAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** A connection to the server of this repository, whose answers always have their `Content-Length`. */
export interface LeanConnection {
  /**
   * Sends one request; the next may follow its answer.
   * @throws Error where the connection ends or gives no answer in time
   */
  post(path: string, body: string): Promise<LeanAnswer>;
  /** Whether it can still be used: a server ends what is idle for long. */
  readonly isOpen: boolean;
  close(): void;
}

interface Waiting {
  resolve(answer: LeanAnswer): void;
  reject(error: Error): void;
}

const headEnd = Buffer.from('\r\n\r\n');
const nothing = Buffer.alloc(0);

/** A connection to `host` that is given up where an answer takes longer than `timeoutMs`. */
export function openConnection({ hostname, port, host }: URL, timeoutMs: number): LeanConnection {
  const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let received: Buffer = nothing;
  let waiting: Waiting | null = null;
  const fail = (error: Error): void => {
    waiting?.reject(error);
    waiting = null;
    socket.destroy();
  };
  socket.setTimeout(timeoutMs, () => {
    if (waiting !== null) fail(new Error(`no answer within ${timeoutMs / 1000} s`));
  });
  socket.on('error', fail);
  socket.on('close', () => {
    fail(new Error('the connection ended before the answer did'));
  });
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const answer = readAnswer(received);
    if (answer === null) return;
    if (answer instanceof Error) {
      fail(answer);
      return;
    }
    received = nothing;
    const caller = waiting;
    waiting = null;
    caller?.resolve(answer);
  });
  return {
    post(path, body) {
      return new Promise((resolve, reject) => {
        if (socket.destroyed || waiting !== null) {
          reject(new Error(socket.destroyed ? 'the connection has ended' : 'the answer before this one is missing'));
          return;
        }
        waiting = { resolve, reject };
        const length = Buffer.byteLength(body);
        socket.write(
          `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
        );
      });
    },
    get isOpen() {
      return !socket.destroyed;
    },
    close() {
      socket.destroy();
    },
  };
}

/** The answer once all of it is there, else null; an error where it has no `Content-Length`. */
function readAnswer(received: Buffer): LeanAnswer | Error | null {
  const end = received.indexOf(headEnd);
  if (end === -1) return null;
  const head = received.toString('latin1', 0, end);
  const length = /\r\nContent-Length: (\d+)/i.exec(head)?.[1];
  if (length === undefined) return new Error(`an answer without Content-Length: ${head}`);
  const start = end + headEnd.length;
  if (received.length < start + Number(length)) return null;
  return { status: Number(head.slice(9, 12)), body: received.subarray(start, start + Number(length)) };
}
