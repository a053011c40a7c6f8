/** Owns a client of one stdio session in this process. */
import { PassThrough } from 'node:stream';
import { openStdio } from '../../../src/server.ts';
import { createFrameRecord, type Answer, type RcpClient } from './client.ts';
import { embedding } from './frames.ts';
import type { TestServer } from './server.ts';

/** A client that sees single lines. */
export interface StdioClient extends RcpClient {
  readonly transport: 'stdio';
  /** Every line so far, notifications included, in the order in which they came. */
  readonly lines: readonly string[];
  /** Writes bytes as they are. */
  write(bytes: string | Buffer): void;
  /** Waits for the answer to a frame without writing it. */
  answerTo(frame: string | Buffer): Promise<Answer>;
  /** Ends the input. */
  end(): void;
  /** Resolves when the server has ended the session. */
  readonly finished: Promise<void>;
}

/** Longest wait for an answer: above every deadline of the fixture. @unit ms */
const maxWaitMs = 12_000;

interface Waiter {
  readonly isBatch: boolean;
  /** JSON text of the id, null where the frame has none that can be read. */
  readonly id: string | null;
  resolve(answer: Answer): void;
}

/** What an answer must look like to be the answer to this frame. */
function waiterFor(frame: string | Buffer, resolve: (answer: Answer) => void): Waiter {
  const text = frame.toString().replace(/^\ufeff/, '');
  const isBatch = /^\s*\[/.test(text);
  try {
    const { id } = JSON.parse(text) as { id?: unknown };
    const isUsable = typeof id === 'string' || typeof id === 'number';
    return { isBatch, id: isUsable ? JSON.stringify(id) : null, resolve };
  } catch {
    return { isBatch, id: null, resolve };
  }
}

function isAnswerTo(waiter: Waiter, { value }: Answer): boolean {
  if (Array.isArray(value)) return waiter.isBatch;
  const { id } = value as { id?: unknown };
  return id === null || (!waiter.isBatch && waiter.id === JSON.stringify(id));
}

/** A fresh session on a server. */
export function openStdioClient(server: TestServer): StdioClient {
  const input = new PassThrough();
  const output = new PassThrough();
  const record = createFrameRecord();
  const lines: string[] = [];
  const waiters: Waiter[] = [];
  const session = openStdio(server.service, { input, output }, server.parts);
  let rest = '';
  let sentinels = 0;

  const receive = (line: string) => {
    lines.push(line);
    if (line === '') record.blame('an empty line');
    const answer = record.received(line);
    if (answer.value?.method !== undefined) return;
    const index = waiters.findIndex((waiter) => isAnswerTo(waiter, answer));
    const [waiter] = index === -1 ? [] : waiters.splice(index, 1);
    if (waiter === undefined) record.blame(`an answer that nobody waits for: ${line.slice(0, 300)}`);
    else waiter.resolve(answer);
  };
  output.setEncoding('utf8');
  output.on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    parts.forEach(receive);
  });

  const write = (bytes: string | Buffer) => {
    record.sent(bytes);
    input.write(bytes);
  };
  const answerTo = (frame: string | Buffer) =>
    new Promise<Answer>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`no answer within ${maxWaitMs} ms to ${frame.toString('utf8').slice(0, 300)}`));
      }, maxWaitMs);
      waiters.push(
        waiterFor(frame, (answer) => {
          clearTimeout(timer);
          resolve(answer);
        }),
      );
    });
  const ask = (frame: string | Buffer) => {
    const answer = answerTo(frame);
    record.sent(frame);
    input.write(Buffer.concat([Buffer.from(frame), Buffer.from('\n')]));
    return answer;
  };
  return {
    transport: 'stdio',
    lines,
    write,
    answerTo,
    ask,
    async tell(frame) {
      write(Buffer.concat([Buffer.from(frame), Buffer.from('\n')]));
      // Whatever is answered at all is answered before this call, or at the latest before the session ends.
      await ask(embedding(`sentinel-${(sentinels += 1)}`));
      const [problem] = record.problems;
      if (problem !== undefined) throw new Error(problem);
    },
    problems: () => record.problems,
    end: () => input.end(),
    finished: session.finished,
    async close() {
      session.stop('the test is over');
      await session.finished;
      if (rest !== '') record.blame(`a line without its end: ${rest.slice(0, 300)}`);
    },
  };
}
