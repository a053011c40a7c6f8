/** Owns the files of a run: begun, gone on with exactly where it stopped, and completed under the output's name. */
import { open, readFile, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { BadRow, Chunk, InputPosition } from '../row.ts';
import { BulkFailure } from '../row.ts';
import type { OutputFormat } from '../write/format.ts';
import { renameDurably, syncFolder, writeAll } from './durable.ts';
import {
  journalLine,
  readJournal,
  type ChunkEntry,
  type Entry,
  type Fingerprint,
  type Journal,
  type SealEntry,
} from './journal.ts';
import { takeLock } from './lock.ts';
import { workPaths } from './paths.ts';

/** What a whole output holds. */
export interface WorkSummary {
  readonly rows: number;
  readonly badRows: number;
}

/** A run that can be gone on with. */
export interface Work {
  readonly startChunk: number;
  /** Rows of the input that are done, and those of them with vectors. */
  readonly startIndex: number;
  readonly startRows: number;
  readonly startBad: number;
  readonly startPosition: InputPosition;
  /** Check sums of the texts of the chunks that are done. */
  readonly digests: readonly number[];
  /** Appends chunks, in order, and resolves when they last. */
  commit(chunks: readonly { readonly chunk: Chunk; readonly bytes: Buffer }[]): Promise<void>;
  /** Makes the output whole and gives it its name. */
  complete(): Promise<WorkSummary>;
  /** Closes the files and gives the lock back, however far the run has come. */
  close(): Promise<void>;
}

/** How to open a run. */
export interface WorkOptions {
  readonly out: string;
  readonly fingerprint: Fingerprint;
  /** Values of the fingerprint that any other one may become: they change nothing of what is done. */
  readonly mayBecome: Fingerprint;
  readonly format: OutputFormat;
  readonly restarts: boolean;
}

/**
 * Opens a run, or says what the whole output of the same run holds.
 * @throws BulkFailure where another run writes it, or where what is there is of another input, model or setting
 */
export async function openWork(options: WorkOptions): Promise<Work | WorkSummary> {
  const paths = workPaths(options.out);
  const unlock = await takeLock(paths.lock);
  try {
    if (options.restarts) await removeWork(options.out);
    const found = await readFile(paths.journal).then(readJournal, nullIfMissing);
    // Where nothing was recorded there is nothing to go on with, and nothing to lose.
    const isEmpty = found !== null && found.chunks.length === 0 && found.seal === null;
    const journal = isEmpty ? null : found;
    if (journal !== null) refuseOther(journal.fingerprint, options);
    if (journal !== null && journal.seal !== null) {
      const summary = await finishSealed(options.out, journal.seal);
      unlock();
      return summary;
    }
    if (found === null && !options.restarts && (await sizeOf(options.out)) !== null) {
      throw new BulkFailure(
        `${options.out} is there already, and no journal says what it holds; --restart replaces it`,
      );
    }
    return await (journal === null ? begin(options, unlock) : goOn(options, journal, unlock));
  } catch (error) {
    unlock();
    throw error;
  }
}

async function removeWork(out: string): Promise<void> {
  const { work, built, journal, skipped } = workPaths(out);
  // The journal first: without it nothing else counts.
  for (const path of [journal, work, built, skipped]) await rm(path, { force: true });
}

/** Refuses to go on with the run of another fingerprint. */
function refuseOther(found: Fingerprint, { out, fingerprint, mayBecome }: WorkOptions): void {
  const names = [...new Set([...Object.keys(found), ...Object.keys(fingerprint)])];
  const isOther = (name: string): boolean => found[name] !== fingerprint[name];
  const isAllowed = (name: string): boolean => mayBecome[name] !== undefined && mayBecome[name] === fingerprint[name];
  const differing = names.filter((name) => isOther(name) && !isAllowed(name));
  if (differing.length === 0) return;
  const lines = differing.map((name) => `  ${name}: was ${found[name] ?? 'unset'}, is ${fingerprint[name] ?? 'unset'}`);
  throw new BulkFailure(`${out} was begun otherwise; --restart begins anew\n${lines.join('\n')}`);
}

async function begin(options: WorkOptions, unlock: () => void): Promise<Work> {
  const { work, journal } = workPaths(options.out);
  const { head } = options.format;
  const file = await open(work, 'w');
  await writeAll(file, head, 0);
  await file.datasync();
  const start = journalLine({ type: 'start', fingerprint: options.fingerprint, headBytes: head.length });
  await writeFile(journal, start, { flush: true });
  await syncFolder(journal);
  const first = { fingerprint: options.fingerprint, headBytes: head.length, chunks: [], seal: null, endsBytes: [] };
  return workOf(options, { ...first, bytes: start.length }, file, unlock);
}

async function goOn(options: WorkOptions, journal: Journal, unlock: () => void): Promise<Work> {
  const { work } = workPaths(options.out);
  const found = await underFingerprint(journal, options);
  const file = await open(work, 'r+').catch((error: unknown) => nullIfMissing(error));
  if (file === null) throw new BulkFailure(`${work} is missing, though its journal is there; --restart begins anew`);
  const whole = await countWhole(file, found);
  const chunks = found.chunks.slice(0, whole);
  const bytes = whole === found.chunks.length ? found.bytes : (found.endsBytes[whole - 1] ?? firstLineBytes(found));
  await file.truncate(chunks.at(-1)?.endBytes ?? found.headBytes);
  return workOf(options, { ...found, chunks, bytes, endsBytes: found.endsBytes.slice(0, whole) }, file, unlock);
}

/** The same journal, as that of a run with this fingerprint. */
async function underFingerprint(found: Journal, { out, fingerprint }: WorkOptions): Promise<Journal> {
  if (Object.entries(fingerprint).every(([name, value]) => found.fingerprint[name] === value)) return found;
  const { headBytes, chunks } = found;
  const bytes = await rewriteJournal(workPaths(out).journal, [{ type: 'start', fingerprint, headBytes }, ...chunks]);
  return readJournal(bytes) ?? found;
}

const firstLineBytes = ({ fingerprint, headBytes }: Journal): number =>
  journalLine({ type: 'start', fingerprint, headBytes }).length;

/** How many of the chunks lie in the work file as the journal says. */
async function countWhole(file: FileHandle, { chunks, headBytes }: Journal): Promise<number> {
  let start = headBytes;
  for (const [position, { endBytes, sum }] of chunks.entries()) {
    if ((await sumOf(file, start, endBytes)) !== sum) return position;
    start = endBytes;
  }
  return chunks.length;
}

async function sumOf(file: FileHandle, start: number, end: number): Promise<number | null> {
  const bytes = Buffer.allocUnsafe(Math.min(end - start, 1_048_576));
  let sum = 0;
  for (let position = start; position < end;) {
    const { bytesRead } = await file.read(bytes, 0, Math.min(bytes.length, end - position), position);
    if (bytesRead === 0) return null;
    sum = crc32(bytes.subarray(0, bytesRead), sum);
    position += bytesRead;
  }
  return sum;
}

async function workOf(options: WorkOptions, found: Journal, file: FileHandle, unlock: () => void): Promise<Work> {
  const { out, format } = options;
  const paths = workPaths(out);
  const journal = await open(paths.journal, 'r+');
  await journal.truncate(found.bytes);
  const last = found.chunks.at(-1);
  let journalBytes = found.bytes;
  let workBytes = last?.endBytes ?? found.headBytes;
  let rows = last?.rows ?? 0;
  let index = last?.index ?? 0;
  let badRows = found.chunks.reduce((sum, { bad }) => sum + bad.length, 0);
  const append = async (lines: Buffer): Promise<void> => {
    await writeAll(journal, lines, journalBytes);
    journalBytes += lines.length;
    await journal.datasync();
  };
  return {
    startChunk: found.chunks.length,
    startIndex: index,
    startRows: rows,
    startBad: badRows,
    startPosition: last?.after ?? { file: 0, offset: 0, line: 0 },
    digests: found.chunks.map(({ digest }) => digest),
    async commit(chunks) {
      const lines: Buffer[] = [];
      const start = workBytes;
      for (const { chunk, bytes } of chunks) {
        workBytes += bytes.length;
        rows += chunk.rows.length;
        badRows += chunk.bad.length;
        index = chunk.firstIndex + chunk.rows.length + chunk.bad.length;
        lines.push(journalLine(entryOf(chunk, { index, rows, endBytes: workBytes, sum: crc32(bytes) })));
      }
      await writeAll(file, Buffer.concat(chunks.map(({ bytes }) => bytes)), start);
      // First what was computed, then what says so: a line without its bytes cannot be.
      await file.datasync();
      await append(Buffer.concat(lines));
    },
    async complete() {
      await writeSkipped(paths.skipped, await readFile(paths.journal));
      const whole = await format.complete({ workPath: paths.work, builtPath: paths.built, rows });
      const from = whole === paths.built ? 'built' : 'work';
      const seal: SealEntry = { type: 'seal', from, bytes: (await stat(whole)).size, index, rows, badRows };
      await append(journalLine(seal));
      return finishSealed(out, seal);
    },
    async close() {
      await file.close();
      await journal.close();
      unlock();
    },
  };
}

type EntryFacts = Pick<ChunkEntry, 'index' | 'rows' | 'endBytes' | 'sum'>;

const entryOf = ({ number, digest, after, bad }: Chunk, facts: EntryFacts): ChunkEntry => ({
  type: 'chunk',
  number,
  ...facts,
  digest,
  after,
  bad,
});

/** Gives a whole output its name; it may have it already. */
async function finishSealed(out: string, seal: SealEntry): Promise<WorkSummary> {
  const { work, built, journal } = workPaths(out);
  const whole = seal.from === 'built' ? built : work;
  if ((await sizeOf(whole)) === seal.bytes) await renameDurably(whole, out);
  if ((await sizeOf(out)) !== seal.bytes) {
    throw new BulkFailure(`${out} is not what ${journal} says it is; --restart makes it anew`);
  }
  for (const path of [built, work]) await rm(path, { force: true });
  await forgetChunks(journal);
  const { rows, badRows } = seal;
  return { rows, badRows };
}

/** Nobody goes on from a chunk of a whole output. */
async function forgetChunks(path: string): Promise<void> {
  const found = readJournal(await readFile(path));
  if (found === null || found.seal === null || found.chunks.length === 0) return;
  const { fingerprint, headBytes, seal } = found;
  await rewriteJournal(path, [{ type: 'start', fingerprint, headBytes }, seal]);
}

/** Puts a journal of these entries in the place of the one that is there, at once. */
async function rewriteJournal(path: string, entries: readonly Entry[]): Promise<Buffer> {
  const bytes = Buffer.concat(entries.map(journalLine));
  await writeFile(`${path}.short`, bytes, { flush: true });
  await renameDurably(`${path}.short`, path);
  return bytes;
}

async function writeSkipped(path: string, journal: Buffer): Promise<void> {
  const bad = readJournal(journal)?.chunks.flatMap((chunk): readonly BadRow[] => chunk.bad) ?? [];
  if (bad.length === 0) await rm(path, { force: true });
  else await writeFile(path, bad.map((row) => `${JSON.stringify(row)}\n`).join(''), { flush: true });
}

const sizeOf = (path: string): Promise<number | null> => stat(path).then(({ size }) => size, nullIfMissing);

function nullIfMissing(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}
