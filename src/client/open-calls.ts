/** Owns the calls under way on one connection that carries many: which of them a frame settles. */
import { errorOf, type RcpError } from './error.ts';
import type { LineEnds } from './lines.ts';
import { errorIn, oversizedError, parseFrame, progressOf, resultOf, type Request, type Result } from './transport.ts';

/** Calls by their ids. */
export interface OpenCalls {
  /** Adds a call; its result, or the error that came for it. */
  add(id: number, onProgress: Request['onProgress']): Promise<Result>;
  /** True where the call was still waiting: nobody wants its answer any more. */
  forget(id: number): boolean;
  /** Takes one frame. */
  readonly receive: (line: string) => void;
  /** Takes what is left of a frame that was too long to be read. */
  readonly receiveLong: (ends: LineEnds) => void;
  /** Ends all calls. */
  fail(error: Error): void;
}

interface Waiting {
  readonly onProgress: Request['onProgress'];
  resolve(frame: Result): void;
  reject(error: Error): void;
}

/** No calls, on the connection to this address. */
export function createOpenCalls(address: string, maxAnswerBytes: number): OpenCalls {
  const waiting = new Map<unknown, Waiting>();

  const take = (id: unknown): Waiting | undefined => {
    const one = waiting.get(id);
    waiting.delete(id);
    return one;
  };

  /** Ends the only call with the error of an answer that names none; of several, nobody knows whose it is. */
  const failUnnamed = (error: RcpError) => {
    if (waiting.size === 1) {
      for (const id of waiting.keys()) take(id)?.reject(error);
      return;
    }
    const message = `${address}: an answer that names no call ended all under way (${error.message})`;
    // They stay here until each has told the server that nobody waits for its answer.
    for (const each of waiting.values()) each.reject(errorOf('unavailable', message, { cause: error }));
  };

  return {
    async add(id, onProgress) {
      const frame = await new Promise<Result>((resolve, reject) => {
        waiting.set(id, { onProgress, resolve, reject });
      });
      return resultOf(frame, address);
    },
    forget: (id) => waiting.delete(id),
    receive(line) {
      const frame = parseFrame(line);
      if (frame === null) return;
      const progress = progressOf(frame);
      if (progress !== null) waiting.get(progress.token)?.onProgress?.(progress.progress);
      else if (frame['id'] === null && 'error' in frame) failUnnamed(errorIn(frame['error'], address));
      else take(frame['id'])?.resolve(frame);
    },
    receiveLong(ends) {
      if (methodAtHead.test(ends.head)) return;
      const id = idOfLongAnswer(ends);
      const error = oversizedError(address, maxAnswerBytes);
      if (id === null) failUnnamed(error);
      else take(id)?.reject(error);
    },
    fail(error) {
      for (const each of waiting.values()) each.reject(error);
      waiting.clear();
    },
  };
}

const version = String.raw`"jsonrpc"\s*:\s*"[^"]*"`;
const idMember = String.raw`"id"\s*:\s*(\d+)`;
/** Servers write the id before the result, as the specification shows it, or behind it. */
const idAtHead = new RegExp(String.raw`^\s*\{\s*(?:${version}\s*,\s*)?${idMember}\s*,`);
// The last brace closes the frame: what stands right before it is a member of the frame, not of the result.
const idAtTail = new RegExp(String.raw`,\s*${idMember}\s*(?:,\s*${version}\s*)?\}\s*$`);

/** A notification: no answer to anything. */
const methodAtHead = new RegExp(String.raw`^\s*\{\s*(?:${version}\s*,\s*)?"method"\s*:`);

/** The id in an answer of which only the ends are left, or null. */
const idOfLongAnswer = ({ head, tail }: LineEnds): number | null => {
  const found = idAtHead.exec(head)?.[1] ?? idAtTail.exec(tail)?.[1];
  return found === undefined ? null : Number(found);
};
