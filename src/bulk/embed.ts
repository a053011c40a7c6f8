/** Owns a bulk run as a whole: files in, an output that is whole or can be gone on with. */
import { ConfigurationError } from '../errors.ts';
import type { IntegerOutput } from '../tensor/quantize.ts';
import { chunksOf } from './chunks.ts';
import type { FieldNames } from './read/fields.ts';
import { fingerprintOf, type InputFile } from './read/inputs.ts';
import { readRows } from './read/rows.ts';
import { BulkFailure } from './row.ts';
import type { BadRow, Chunk, InputPosition } from './row.ts';
import { runChunks, type RunProgress } from './run.ts';
import type { VectorSource, VectorWish } from './source/source.ts';
import { formatOf, outputEndOf } from './write/choose.ts';
import type { OutputShape } from './write/format.ts';
import { openWork, type Work } from './work/work.ts';
import { writeToStdout } from './write/stdout.ts';

/** What a run is asked for. */
export interface BulkPlan {
  /** The operand: a file, a folder, or `-`. */
  readonly input: string;
  readonly files: readonly InputFile[];
  readonly fields: FieldNames;
  readonly wish: VectorWish;
  readonly output: IntegerOutput | null;
  /** `-` is stdout. */
  readonly out: string;
  readonly skipsBad: boolean;
  readonly restarts: boolean;
}

/** Who is told how a run goes. */
export interface BulkObserver {
  /** The run begins, or goes on behind what a run before it has done. */
  onStart(before: { readonly rows: number; readonly bytes: number }): void;
  onProgress(progress: RunProgress, doneBytes: number): void;
  onBad(bad: BadRow): void;
}

/** What came of a run. */
export interface BulkResult {
  /** Whether the output was whole before. */
  readonly wasDone: boolean;
  readonly rows: number;
  readonly badRows: number;
}

/** Sizes of chunks: large ones keep every core busy, the rows of many texts take much memory. */
const chunkLimits = {
  dense: { texts: 256, characters: 2_097_152 },
  sparse: { texts: 256, characters: 2_097_152 },
  multi: { texts: 32, characters: 262_144 },
} as const;

const start: InputPosition = { file: 0, offset: 0, line: 0 };

/**
 * Runs a plan with a source.
 * @throws BulkFailure; the signal's reason
 */
export async function runBulk(
  plan: BulkPlan,
  source: VectorSource,
  observer: BulkObserver,
  signal: AbortSignal,
): Promise<BulkResult> {
  const { wish, output, fields, out } = plan;
  const shape: OutputShape = { kind: wish.method, output, dimension: source.dimension, hasIds: fields.id !== null };
  const format = formatOf(outputEndOf(out), shape);
  if (out === '-') return toStdout(plan, source, observer, { format, signal });
  const work = await openWork({
    out,
    format,
    restarts: plan.restarts,
    fingerprint: await fingerprint(plan, source),
    // What was done without leaving rows out had none to leave out.
    mayBecome: { skipBad: 'true' },
  });
  if (!('commit' in work)) return { wasDone: true, ...work };
  try {
    observer.onStart({ rows: work.startRows, bytes: bytesBefore(plan.files, work.startPosition) });
    await runChunks({
      chunks: remaining(plan, work),
      source,
      signal,
      commit: (chunks) => work.commit(chunks.map((one) => ({ chunk: one.chunk, bytes: format.encode(one) }))),
      onProgress: tell(plan, observer),
    });
    // Completing takes memory of its own for some formats, and nothing of the source.
    await source.close();
    return { wasDone: false, ...(await work.complete()) };
  } finally {
    await work.close();
  }
}

async function fingerprint(plan: BulkPlan, source: VectorSource): Promise<Readonly<Record<string, string>>> {
  const { wish, fields, output } = plan;
  return {
    input: await fingerprintOf(plan.input, plan.files),
    model: source.identity,
    method: wish.method,
    kind: wish.kind,
    dimensions: String(source.dimension),
    output: output ?? 'float32',
    field: fields.text,
    idField: fields.id ?? 'none',
    skipBad: String(plan.skipsBad),
    chunks: JSON.stringify(chunkLimits[wish.method]),
    // What is read anew is known by its check sums: those of another form say nothing.
    ...(plan.input === '-' ? { checkSums: 'of texts, ids and bad rows' } : {}),
  };
}

function cut(
  { files, fields, wish, skipsBad }: BulkPlan,
  from: { number: number; index: number; position: InputPosition },
) {
  const options = { limits: chunkLimits[wish.method], skipsBad, fileNames: files.map(({ name }) => name) };
  return chunksOf(readRows(files, from.position, fields), from, options);
}

/** The chunks that are left: behind what is done, or, of what can be read once only, after it has been read again. */
async function* remaining(plan: BulkPlan, work: Work): AsyncGenerator<Chunk> {
  const { startChunk: number, startIndex: index, startPosition: position, digests } = work;
  if (plan.input !== '-') {
    yield* cut(plan, { number, index, position });
    return;
  }
  let seen = 0;
  for await (const chunk of cut(plan, { number: 0, index: 0, position: start })) {
    if (chunk.number >= number) {
      yield chunk;
      continue;
    }
    if (chunk.digest !== digests[chunk.number]) {
      throw new BulkFailure(
        `stdin differs from what the run to go on with read, from row ${String(chunk.firstIndex)} on; --restart begins anew`,
      );
    }
    seen += 1;
  }
  if (seen < number)
    throw new BulkFailure('stdin ends before what the run to go on with has done; --restart begins anew');
}

function tell({ files }: BulkPlan, observer: BulkObserver): (progress: RunProgress) => void {
  return (progress) => {
    for (const bad of progress.bad) observer.onBad(bad);
    observer.onProgress(progress, bytesBefore(files, progress.last.after));
  };
}

/** Bytes of the files before a place; of a Parquet file, whose places are rows, only whole ones. */
function bytesBefore(files: readonly InputFile[], { file, offset }: InputPosition): number {
  const whole = files.slice(0, file).reduce((sum, { bytes }) => sum + bytes, 0);
  const open = files[file];
  return open === undefined || open.kind === 'parquet' ? whole : whole + Math.min(offset, open.bytes || offset);
}

async function toStdout(
  plan: BulkPlan,
  source: VectorSource,
  observer: BulkObserver,
  { format, signal }: { readonly format: ReturnType<typeof formatOf>; readonly signal: AbortSignal },
): Promise<BulkResult> {
  if (plan.restarts) throw new ConfigurationError(['--restart: what goes to stdout is never gone on with']);
  let rows = 0;
  let badRows = 0;
  observer.onStart({ rows: 0, bytes: 0 });
  await runChunks({
    chunks: cut(plan, { number: 0, index: 0, position: start }),
    source,
    signal,
    async commit(chunks) {
      for (const one of chunks) {
        const isRead = await writeToStdout(format.encode(one));
        if (!isRead) throw new BulkFailure('whoever read stdout stopped before the end');
        rows += one.chunk.rows.length;
        badRows += one.chunk.bad.length;
      }
    },
    onProgress: tell(plan, observer),
  });
  return { wasDone: false, rows, badRows };
}
