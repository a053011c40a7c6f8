/** Owns callers without manners: they leave in the middle, read slowly, or send everything at once. */
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { readAnswers } from '../fuzz/http-answers.ts';

/** Longest time for the answers of pipelined calls. @unit ms */
const answerTimeoutMs = 60_000;
/** Pause of a slow reader between two looks. @unit ms */
const slowPauseMs = 20;
const slowLooks = 25;

const requestOf = (frame: string): Buffer => {
  const body = Buffer.from(frame);
  return Buffer.concat([
    Buffer.from(`POST /rcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${body.length}\r\n\r\n`),
    body,
  ]);
};

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      // What the server does to a connection that is thrown away is its own business.
      socket.on('error', () => undefined);
      resolve(socket);
    });
  });
}

/** Leaves after a part of the body. */
export async function leaveInBody(port: number, frame: string): Promise<void> {
  const socket = await open(port);
  const request = requestOf(frame);
  await new Promise<void>((resolve) => socket.write(request.subarray(0, request.length - 3), () => resolve()));
  socket.resetAndDestroy();
}

/** Leaves as soon as the request is sent, or with the first bytes of its answer. */
export async function leaveInAnswer(port: number, frame: string, isAfterFirstByte: boolean): Promise<void> {
  const socket = await open(port);
  const first = new Promise<void>((resolve) => {
    socket.once('data', () => resolve());
    socket.once('close', () => resolve());
  });
  await new Promise<void>((resolve) => socket.write(requestOf(frame), () => resolve()));
  if (isAfterFirstByte) await first;
  socket.destroy();
}

/** Sends calls one behind the other and gives the bodies of their answers, in order. */
export async function pipeline(port: number, frames: readonly string[], isSlow: boolean): Promise<string[]> {
  const socket = await open(port);
  const parts: Buffer[] = [];
  try {
    let isReluctant = isSlow;
    if (isSlow) socket.pause();
    const done = new Promise<string[]>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`no answer within ${answerTimeoutMs} ms`));
      }, answerTimeoutMs);
      const look = (isAtEnd: boolean) => {
        const { answers } = readAnswers(Buffer.concat(parts), isAtEnd);
        if (answers.length < frames.length && !isAtEnd) return;
        clearTimeout(timer);
        resolve(answers.map(({ body }) => body.toString()));
      };
      socket.on('data', (part) => {
        parts.push(part);
        if (isReluctant) socket.pause();
        look(false);
      });
      socket.on('close', () => {
        look(true);
      });
    });
    socket.write(Buffer.concat(frames.map(requestOf)));
    for (let looks = 0; isSlow && looks < slowLooks; looks += 1) {
      await wait(slowPauseMs);
      socket.resume();
    }
    isReluctant = false;
    socket.resume();
    return await done;
  } finally {
    socket.destroy();
  }
}
