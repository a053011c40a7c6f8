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

/** Result of `embed`. */
export async function encodeEmbedResult(
  result: { vectors: readonly Float32Array[]; dimension: number },
  form: VectorForm,
  usage: CallUsage,
): Promise<Buffer> {
  const writer = new JsonWriter().text('{"vectors":');
  await writeList(writer, result.vectors, result.dimension, (vector) => {
    writeVector(writer, vector, form);
  });
  return finish(writer, `,"encoding":"${form.encoding}","dimension":${result.dimension}`, usage);
}

/** Result of `embed/multi`. */
export async function encodeMultiResult(
  result: { matrices: readonly Matrix[]; dimension: number },
  form: VectorForm,
  usage: CallUsage,
): Promise<Buffer> {
  const { dimension, matrices } = result;
  const writer = new JsonWriter().text('{"matrices":');
  const rowCount = matrices.reduce((sum, matrix) => sum + matrix.values.length / dimension, 0);
  await writeList(writer, matrices, (rowCount * dimension) / Math.max(1, matrices.length), ({ values }) => {
    writer.text('[');
    for (let start = 0; start < values.length; start += dimension) {
      if (start > 0) writer.text(',');
      writeVector(writer, values.subarray(start, start + dimension), form);
    }
    writer.text(']');
  });
  return finish(writer, `,"encoding":"${form.encoding}","dimension":${dimension}`, usage);
}

/** Result of `embed/sparse`. */
export async function encodeSparseResult(sparse: readonly SparseVector[], usage: CallUsage): Promise<Buffer> {
  const writer = new JsonWriter().text('{"sparse":');
  const numbers = sparse.reduce((sum, vector) => sum + 2 * vector.values.length, 0);
  await writeList(writer, sparse, numbers / Math.max(1, sparse.length), ({ indices, values }) => {
    writer
      .text(`{"indices":[${indices.join(',')}],"values":`)
      .float32List(values)
      .text('}');
  });
  return finish(writer, '', usage);
}

/** Result of `rerank`; scores are doubles and finite. */
export function encodeRerankResult(scores: readonly number[], order: readonly number[], usage: CallUsage): Buffer {
  const results = order.map((index) => ({ index, score: scores[index] }));
  return Buffer.from(JSON.stringify({ scores, order, results, usage: roundUsage(usage) }));
}

async function writeList<T>(
  writer: JsonWriter,
  list: readonly T[],
  numbersPerElement: number,
  write: (element: T) => void,
): Promise<void> {
  const perSlice = Math.max(1, Math.floor(numbersPerSlice / Math.max(1, numbersPerElement)));
  writer.text('[');
  for (const [index, element] of list.entries()) {
    if (index > 0) writer.text(',');
    if (index > 0 && index % perSlice === 0) await nextTurn();
    write(element);
  }
  writer.text(']');
}

function writeVector(writer: JsonWriter, vector: Float32Array, form: VectorForm): void {
  if (form.output !== null) writer.text(`[${quantize(vector, form.output).join(',')}]`);
  else if (form.encoding === 'json') writer.float32List(vector);
  else writer.text(`"${toBase64(vector)}"`);
}

/** Little-endian binary32; every platform Node runs on is little-endian. */
function toBase64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}

function finish(writer: JsonWriter, members: string, usage: CallUsage): Buffer {
  return writer.text(`${members},"usage":${JSON.stringify(roundUsage(usage))}}`).finish();
}

function roundUsage(usage: CallUsage): Record<string, unknown> {
  const { device, latencyMs, queueMs, computeMs, ...rest } = usage;
  const times = { latencyMs: Math.round(latencyMs), queueMs: Math.round(queueMs), computeMs: Math.round(computeMs) };
  return { ...rest, ...times, ...(device === null ? {} : { device }) };
}
