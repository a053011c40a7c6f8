/** Owns the run: chunks to vectors to the output, in order, with a bounded number of them under way. */
import { setMaxListeners } from 'node:events';
import { BulkFailure, describeBadRow } from './row.ts';
import type { BadRow, Chunk } from './row.ts';
import { RefusedText, type Embedded, type VectorSource } from './source/source.ts';
import type { EmbeddedChunk } from './write/format.ts';

/** How far a run is; counts are those of this run alone. */
export interface RunProgress {
  readonly rows: number;
  readonly tokens: number;
  readonly bad: readonly BadRow[];
  readonly last: Chunk;
}

/** What a run is made of. */
export interface RunParts {
  readonly chunks: AsyncIterable<Chunk>;
  readonly source: VectorSource;
  /** Resolves when the chunks last. */
  readonly commit: (chunks: readonly EmbeddedChunk[]) => Promise<void>;
  readonly onProgress: (progress: RunProgress) => void;
  /** Ends the run: what is whole is recorded, nothing else. */
  readonly signal: AbortSignal;
}

/** Chunks that may wait to be recorded, for each call that a source takes. */
const chunksPerCall = 2;

type WholeChunk = EmbeddedChunk & Embedded;

interface Underway {
  readonly done: Promise<WholeChunk>;
  isDone: boolean;
}

/**
 * Runs all chunks.
 * @throws whatever reading, the source or recording throws; the signal's reason. What was recorded before stays.
 */
export async function runChunks({ chunks, source, commit, onProgress, signal }: RunParts): Promise<void> {
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);
  // Every call listens, which is no leak.
  setMaxListeners(0, ended);
  const most = source.parallelCalls * chunksPerCall;
  const underway: Underway[] = [];
  const wakers: (() => void)[] = [];
  let openCalls = 0;
  let isRead = false;
  // Not after a failure to record: what a half of it left behind is cut off by the next run.
  const recorder = { hasFailed: false };
  let rows = 0;
  let tokens = 0;

  const notify = (): void => {
    for (const wake of wakers.splice(0)) wake();
  };
  const changed = async (): Promise<void> => {
    ended.throwIfAborted();
    await new Promise<void>((resolve) => wakers.push(resolve));
    ended.throwIfAborted();
  };
  ended.addEventListener('abort', notify);

  const embed = async (chunk: Chunk): Promise<WholeChunk> => {
    openCalls += 1;
    try {
      // A chunk of nothing but bad rows needs no call, but its place in the order.
      const texts = chunk.rows.map(({ text }) => text);
      return { chunk, ...(await source.embed(texts, ended)) };
    } catch (error) {
      throw error instanceof RefusedText ? failureOf(error, chunk) : error;
    } finally {
      openCalls -= 1;
    }
  };
  const start = (chunk: Chunk): void => {
    const one: Underway = { done: embed(chunk), isDone: false };
    one.done.then(
      () => {
        one.isDone = true;
        notify();
      },
      (error: unknown) => {
        failed.abort(error);
      },
    );
    underway.push(one);
  };
  /** Records what is whole at the front. */
  const record = async (): Promise<void> => {
    const whole: WholeChunk[] = [];
    while (underway[0]?.isDone === true) whole.push(await (underway.shift() as Underway).done);
    const last = whole.at(-1);
    if (last === undefined) return;
    recorder.hasFailed = true;
    await commit(whole);
    recorder.hasFailed = false;
    for (const one of whole) {
      rows += one.chunk.rows.length;
      tokens += one.tokens;
    }
    onProgress({ rows, tokens, bad: whole.flatMap(({ chunk }) => chunk.bad), last: last.chunk });
    notify();
  };
  const readAll = async (): Promise<void> => {
    const iterator = chunks[Symbol.asyncIterator]();
    for (;;) {
      const next = await orAborted(iterator.next(), ended);
      if (next.done === true) break;
      while (openCalls >= source.parallelCalls || underway.length >= most) await changed();
      start(next.value);
    }
    isRead = true;
    notify();
  };
  const recordAll = async (): Promise<void> => {
    for (;;) {
      if (underway[0]?.isDone === true) await record();
      else if (isRead && underway.length === 0) return;
      else await changed();
    }
  };

  const abortIfFailed = (error: unknown): never => {
    failed.abort(error);
    throw error;
  };
  const [read, recorded] = await Promise.allSettled([readAll().catch(abortIfFailed), recordAll().catch(abortIfFailed)]);
  if (read.status === 'fulfilled' && recorded.status === 'fulfilled') return;
  await Promise.allSettled(underway.map(({ done }) => done));
  if (!recorder.hasFailed) await record();
  ended.throwIfAborted();
}

/** The failure of a text, by the place that its owner knows. */
function failureOf({ place, message }: RefusedText, { rows }: Chunk): BulkFailure {
  const row = rows[place];
  return new BulkFailure(row === undefined ? message : describeBadRow({ ...row, reason: message }));
}

async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let stop: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
    promise.catch(() => undefined);
  }
}
