/** Owns the way of one file from a server to its final name: resumed, proved, and only then there. */
import { mkdir, open, rename } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { lasting, passing } from './fault.ts';
import { feedFile, hashName, startHash } from './file-hash.ts';
import type { HubFile } from './file-hash.ts';
import type { HttpResponse } from './http-client.ts';
import type { ProgressFile } from './progress.ts';
import { withRetries } from './retry.ts';
import type { Attempt, Pacing } from './retry.ts';

/** One file to get. */
export interface TransferJob {
  readonly file: HubFile;
  /** Where the file is complete. */
  readonly path: string;
  /** Asks for the file with these further headers. */
  open(headers: Readonly<Record<string, string>>): Promise<HttpResponse>;
  /** The variable that names the server, for a person who must look at it. */
  readonly addressVariable: string;
}

/** What a transfer works with. */
export interface TransferContext {
  readonly pacing: Pacing;
  readonly progress: {
    onBytes(file: ProgressFile, doneBytes: number): void;
    onNote(message: string): void;
  };
}

/** What outlives one try. */
interface TransferState {
  /** Most bytes that were ever here; only what goes beyond counts as progress. */
  bestBytes: number;
  mismatches: number;
}

/** A second wrong hash is no accident of the line. */
const maxMismatches = 2;

/**
 * Where a file is while it is incomplete. The name is this program's own: another tool that shares the cache and
 * appended to the same file would spoil it.
 */
export const incompletePathOf = (path: string): string => `${path}.trivec.incomplete`;

/**
 * The byte that the answer begins with, checked before anything of it is kept.
 * @throws HubFault where the answer cannot be the file
 */
export function firstByteOf(
  response: Pick<HttpResponse, 'status' | 'address' | 'header'>,
  { file, addressVariable }: Pick<TransferJob, 'file' | 'addressVariable'>,
  presentBytes: number,
): number {
  const { status, address } = response;
  const type = response.header('content-type') ?? '';
  if (/^text\/html\b/iu.test(type)) {
    throw lasting(
      `${address} answers with a web page instead of the file: check ${addressVariable}, the proxy and any login page`,
    );
  }
  let first = 0;
  if (status === 206) {
    const range = /^bytes (\d+)-\d+\/(\d+|\*)$/u.exec(response.header('content-range') ?? '');
    first = Number(range?.[1] ?? Number.NaN);
    const isWhole = range?.[2] === '*' || Number(range?.[2]) === file.sizeBytes;
    if (first !== presentBytes || !isWhole) throw passing(`${address} answers with another part than was asked for`);
  } else if (status !== 200) {
    throw passing(`${address} answers ${String(status)} instead of the file`);
  }
  const length = response.header('content-length');
  const expected = file.sizeBytes - first;
  if (length !== null && Number(length) !== expected) {
    throw passing(`${address} announces ${length} bytes where ${String(expected)} are expected`);
  }
  return first;
}

async function receive(
  handle: FileHandle,
  job: TransferJob,
  { pacing, progress }: TransferContext,
  state: TransferState,
  attempt: Attempt,
  presentBytes: number,
): Promise<string> {
  const { file } = job;
  const incompletePath = incompletePathOf(job.path);
  let hash = await feedFile(startHash(file), incompletePath);
  if (presentBytes === file.sizeBytes) return hash.digest('hex');
  const range: Record<string, string> = presentBytes > 0 ? { range: `bytes=${String(presentBytes)}-` } : {};
  const response = await job.open(range);
  let doneBytes = firstByteOf(response, job, presentBytes);
  if (doneBytes < presentBytes) {
    await handle.truncate(0);
    hash = startHash(file);
  }
  const bestBytes = state.bestBytes;
  for await (const chunk of response.body) {
    doneBytes += chunk.byteLength;
    if (doneBytes > file.sizeBytes) {
      await handle.truncate(0);
      attempt.hasProgressed = false;
      throw passing(`${response.address} sends more than the ${String(file.sizeBytes)} bytes of the file`);
    }
    hash.update(chunk);
    await handle.appendFile(chunk);
    state.bestBytes = Math.max(state.bestBytes, doneBytes);
    attempt.hasProgressed = doneBytes - bestBytes >= pacing.limits.minProgressBytes;
    progress.onBytes(file, doneBytes);
  }
  if (doneBytes < file.sizeBytes) {
    throw passing(`${response.address} ends after ${String(doneBytes)} of ${String(file.sizeBytes)} bytes`);
  }
  return hash.digest('hex');
}

async function tryTransfer(
  job: TransferJob,
  context: TransferContext,
  state: TransferState,
  attempt: Attempt,
): Promise<void> {
  const { file } = job;
  const incompletePath = incompletePathOf(job.path);
  const handle = await open(incompletePath, 'a+', 0o644);
  try {
    let presentBytes = (await handle.stat()).size;
    if (presentBytes > file.sizeBytes) {
      await handle.truncate(0);
      presentBytes = 0;
    }
    state.bestBytes = Math.max(state.bestBytes, presentBytes);
    const found = await receive(handle, job, context, state, attempt, presentBytes);
    if (found !== file.hash) {
      await handle.truncate(0);
      attempt.hasProgressed = false;
      state.mismatches += 1;
      const message = `expected ${hashName(file)} ${file.hash}, found ${found}: what came is not the file`;
      throw state.mismatches < maxMismatches ? passing(message) : lasting(message);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(incompletePath, job.path);
}

/**
 * Puts a file there under its final name, whole and proved; nothing is there under that name otherwise.
 * @throws ConfigurationError naming the file, where the server does not give it
 */
export async function transferFile(job: TransferJob, context: TransferContext): Promise<void> {
  await mkdir(dirname(job.path), { recursive: true });
  const state: TransferState = { bestBytes: 0, mismatches: 0 };
  const onNote = (message: string): void => {
    context.progress.onNote(message);
  };
  await withRetries(job.file.path, context.pacing, onNote, (attempt) => tryTransfer(job, context, state, attempt));
}
