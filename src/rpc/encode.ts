/** Owns the results of the four methods as JSON bytes, written in slices so that no other caller waits for them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Matrix } from '../executor/protocol.ts';
import type { TaskUsage } from '../task/context.ts';
import type { SparseVector } from '../task/sparse-embed.ts';
import { quantize, type IntegerOutput } from '../tensor/quantize.ts';
import { JsonWriter, maxFloatBytes } from './json-writer.ts';

/** How vectors are carried on the wire. */
export const vectorEncodings = ['json', 'f32-base64'] as const;

/** One of `vectorEncodings`. */
export type VectorEncoding = (typeof vectorEncodings)[number];

/** Form of each vector in a result. */
export interface VectorForm {
  readonly encoding: VectorEncoding;
  /** null: float32. */
  readonly output: IntegerOutput | null;
}

/** Numbers written between two turns of the event loop: about 2 ms. */
const numbersPerSlice = 32_768;

/** `usage` of a result, with what only the call itself knows. */
export interface CallUsage extends TaskUsage {
  readonly latencyMs: number;
  /** Rerank only: passages given, and passages scored. */
  readonly candidates?: number;
  readonly reranked?: number;
  /** What was done otherwise than asked, where the caller allowed it. */
  readonly notes?: readonly string[];
}

/** Largest size of one vector in a form, before it is known. @unit bytes */
export function maxVectorBytes(dimension: number, form: VectorForm): number {
  if (form.encoding === 'f32-base64') return Math.ceil((dimension * 4) / 3) * 4 + 3;
  if (form.output === null) return dimension * (maxFloatBytes + 1) + 3;
  return form.output === 'int8' || form.output === 'uint8' ? dimension * 5 + 3 : dimension + 3;
}

/** What every result says beside its values. */
export interface ResultFacts {
  readonly usage: CallUsage;
  /** Whatever is told of the model that gave them. */
  readonly [member: string]: unknown;
}

/** Result of `embed`. */
export async function encodeEmbedResult(
  result: { vectors: readonly Float32Array[]; dimension: number },
  form: VectorForm,
  facts: ResultFacts,
): Promise<Buffer> {
  const writer = new JsonWriter().text('{"vectors":');
  await writeVectors(writer, result.vectors, form, new Pace());
  return finish(writer, `,"encoding":"${form.encoding}","dimension":${result.dimension}`, facts);
}

/** Result of `embed/multi`. */
export async function encodeMultiResult(
  result: { matrices: readonly Matrix[]; dimension: number },
  form: VectorForm,
  facts: ResultFacts,
): Promise<Buffer> {
  const writer = new JsonWriter().text('{"matrices":');
  await writeMatrices(writer, result.matrices, form, new Pace());
  return finish(writer, `,"encoding":"${form.encoding}","dimension":${result.dimension}`, facts);
}

/** Result of `embed/sparse`. */
export async function encodeSparseResult(sparse: readonly SparseVector[], facts: ResultFacts): Promise<Buffer> {
  const writer = new JsonWriter().text('{"sparse":');
  await writeList(writer, sparse, new Pace(), ({ indices, values }) => {
    writer
      .text(`{"indices":[${indices.join(',')}],"values":`)
      .float32List(values)
      .text('}');
    return 2 * values.length;
  });
  return finish(writer, '', facts);
}

/** Result of `rerank`; scores are doubles and finite. */
export function encodeRerankResult(scores: readonly number[], order: readonly number[], facts: ResultFacts): Buffer {
  const results = order.map((index) => ({ index, score: scores[index] }));
  return Buffer.from(JSON.stringify({ scores, order, results, ...membersOf(facts) }));
}

/** Counts the numbers written since the last turn of the event loop. */
export class Pace {
  #numbers = 0;

  /** Counts some more; resolves at once, or after a turn of the event loop when a slice is full. */
  async wrote(numbers: number): Promise<void> {
    this.#numbers += numbers;
    if (this.#numbers < numbersPerSlice) return;
    this.#numbers = 0;
    await nextTurn();
  }
}

/** Writes `[a,b,…]`; `write` gives how many numbers an element took, or writes a list of its own. */
export async function writeList<T>(
  writer: JsonWriter,
  list: readonly T[],
  pace: Pace,
  write: (element: T) => number | Promise<void>,
): Promise<void> {
  writer.text('[');
  for (const [index, element] of list.entries()) {
    if (index > 0) writer.text(',');
    const written = write(element);
    await (typeof written === 'number' ? pace.wrote(written) : written);
  }
  writer.text(']');
}

/** Writes a list of vectors, all in one form. */
export const writeVectors = (
  writer: JsonWriter,
  vectors: readonly Float32Array[],
  form: VectorForm,
  pace: Pace,
): Promise<void> => writeList(writer, vectors, pace, (vector) => writeVector(writer, vector, form));

/** Writes a list of matrices, each a list of its rows. */
export const writeMatrices = (
  writer: JsonWriter,
  matrices: readonly Matrix[],
  form: VectorForm,
  pace: Pace,
): Promise<void> => writeList(writer, matrices, pace, (matrix) => writeVectors(writer, rowsOf(matrix), form, pace));

/** Views of the rows of a matrix. */
function rowsOf({ values, dimension }: Matrix): Float32Array[] {
  const starts = Array.from({ length: values.length / dimension }, (_, row) => row * dimension);
  return starts.map((start) => values.subarray(start, start + dimension));
}

/** Writes one vector in a form; gives how many numbers it took. */
export function writeVector(writer: JsonWriter, vector: Float32Array, form: VectorForm): number {
  if (form.output !== null) writer.text(`[${quantize(vector, form.output).join(',')}]`);
  else if (form.encoding === 'json') writer.float32List(vector);
  else writer.ascii('"').ascii(toBase64(vector)).ascii('"');
  return vector.length;
}

/** Little-endian binary32; every platform Node runs on is little-endian. */
function toBase64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}

function finish(writer: JsonWriter, members: string, facts: ResultFacts): Buffer {
  return writer.text(`${members},${JSON.stringify(membersOf(facts)).slice(1)}`).finish();
}

const membersOf = ({ usage, ...others }: ResultFacts) => ({ usage: roundUsage(usage), ...others });

function roundUsage(usage: CallUsage): Record<string, unknown> {
  const { device, latencyMs, queueMs, computeMs, ...rest } = usage;
  const times = { latencyMs: Math.round(latencyMs), queueMs: Math.round(queueMs), computeMs: Math.round(computeMs) };
  return { ...rest, ...times, ...(device === null ? {} : { device }) };
}
