/** Owns what calls give back, and reading it from the answers of a server. */
import { decodeFloats } from './base64.ts';
import { errorOf } from './error.ts';
import { vendorKey } from './info.ts';
import type { VectorForms, VectorOutput } from './options.ts';
import type { OrderedPart, Part } from './split.ts';
import type { Result } from './transport.ts';

/** What a call took, summed over its requests. */
export interface Usage {
  /** Tokens after cutting, with special ones. */
  readonly inputTokens: number;
  /** Indices of the texts that were cut. */
  readonly truncated: readonly number[];
  /** From the call to its result, as its caller saw it. @unit ms */
  readonly latencyMs: number;
  /** @unit ms */
  readonly queueMs: number;
  /** @unit ms */
  readonly computeMs: number;
  /** Devices that took part, as far as the server says. */
  readonly devices: readonly string[];
  /** Requests that were answered, and attempts before them that had to be repeated. */
  readonly requests: number;
  readonly retries: number;
  /** What the server did otherwise than asked. */
  readonly notes: readonly string[];
}

interface VectorResult {
  /** Of the model that gave the vectors: keep it with them. */
  readonly identity: string | undefined;
  /** Whether the answers name it themselves; otherwise it is what the server said when the client connected. */
  readonly isIdentityTold: boolean;
  readonly usage: Usage;
}

/** Result of `embed`: one vector for each text, in order. */
export interface EmbedResult<O extends VectorOutput = 'float32'> extends VectorResult {
  readonly vectors: readonly VectorForms[O][];
  /** Before packing, for the forms that pack eight into a byte. */
  readonly dimension: number;
}

/** Terms of a text and their weights. */
export interface SparseVector {
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/** Result of `sparseEmbed`: one vector for each text, in order. */
export interface SparseEmbedResult extends VectorResult {
  readonly sparse: readonly SparseVector[];
}

/** Result of `multiVector`: for each text, in order, a row for each of its tokens. */
export interface MultiVectorResult<O extends VectorOutput = 'float32'> extends VectorResult {
  readonly matrices: readonly (readonly VectorForms[O][])[];
  readonly dimension: number;
}

/** Result of `rerank`. */
export interface RerankResult {
  /** One for each passage, in the order in which they were given; higher is better. */
  readonly scores: readonly number[];
  /** Indices of the passages, best first; `topN` of them at most. */
  readonly order: readonly number[];
  readonly results: readonly { readonly index: number; readonly score: number }[];
  readonly identity: string | undefined;
  /** As of vectors. */
  readonly isIdentityTold: boolean;
  readonly usage: Usage;
}

/** What was answered to one request. */
export interface PartAnswer {
  readonly part: Part;
  readonly result: Result;
}

const malformed = (what: string) => errorOf('internal', `the server's answer is not as RCP defines it: ${what}`);

/**
 * A list in an answer, with as many elements as there were texts.
 * @throws internal
 */
function listOf({ part, result }: PartAnswer, name: string): readonly unknown[] {
  const list = result[name];
  if (Array.isArray(list) && list.length === part.texts.length) return list as unknown[];
  throw malformed(`${name} has not one element for each text`);
}

const constructors = {
  int8: Int8Array,
  uint8: Uint8Array,
  binary: Int8Array,
  ubinary: Uint8Array,
} as const;

/** A vector in the form in which it came. */
function readVector<O extends VectorOutput>(value: unknown, output: O): VectorForms[O] {
  if (typeof value === 'string' && output === 'float32') {
    try {
      return requireFinite(decodeFloats(value)) as VectorForms[O];
    } catch (error) {
      if (error instanceof RangeError) throw malformed('a vector is no base64');
      throw error;
    }
  }
  const numbers = readNumbers(value);
  const form: VectorOutput = output;
  if (form === 'float32') return requireFinite(new Float32Array(numbers)) as VectorForms[O];
  return requireExact(new constructors[form](numbers), numbers) as VectorForms[O];
}

/** @throws internal for what is no number, or too large for its form */
function requireFinite(vector: Float32Array): Float32Array {
  if (vector.every(Number.isFinite)) return vector;
  throw malformed('a vector holds a number that is not finite');
}

/** @throws internal for numbers that typed arrays would wrap around or cut */
function requireExact<T extends Int8Array | Uint8Array | Uint32Array>(array: T, numbers: readonly number[]): T {
  if (numbers.every((number, index) => array[index] === number)) return array;
  throw malformed('a number is not of the form that was asked for');
}

function readNumbers(value: unknown): readonly number[] {
  if (Array.isArray(value) && value.every((number) => typeof number === 'number')) return value;
  throw malformed('a vector is no list of numbers');
}

/** Numbers of a vector with so many dimensions. */
const lengthOf = (dimension: number, output: VectorOutput) =>
  output === 'binary' || output === 'ubinary' ? Math.ceil(dimension / 8) : dimension;

function readRows<O extends VectorOutput>(list: readonly unknown[], output: O, dimension: number): VectorForms[O][] {
  const vectors = list.map((value) => readVector(value, output));
  const length = lengthOf(dimension, output);
  if (vectors.every((vector) => vector.length === length)) return vectors;
  throw malformed(`a vector has not the ${dimension} dimensions that were announced`);
}

/**
 * Vectors of one answer to `embed`.
 * @throws internal
 */
export function readVectors<O extends VectorOutput>(
  answer: PartAnswer,
  output: O,
  dimension: number,
): VectorForms[O][] {
  return readRows(listOf(answer, 'vectors'), output, dimension);
}

/**
 * Matrices of one answer to `embed/multi`.
 * @throws internal
 */
export function readMatrices<O extends VectorOutput>(
  answer: PartAnswer,
  output: O,
  dimension: number,
): VectorForms[O][][] {
  return listOf(answer, 'matrices').map((rows) => {
    if (!Array.isArray(rows)) throw malformed('a matrix is no list of rows');
    return readRows(rows, output, dimension);
  });
}

/**
 * Vectors of one answer to `embed/sparse`.
 * @throws internal
 */
export function readSparse(answer: PartAnswer): SparseVector[] {
  return listOf(answer, 'sparse').map((value) => {
    const { indices, values } = (value ?? {}) as { indices?: unknown; values?: unknown };
    const terms = readNumbers(indices);
    const vector = {
      indices: requireExact(new Uint32Array(terms), terms),
      values: requireFinite(new Float32Array(readNumbers(values))),
    };
    if (vector.indices.length !== vector.values.length)
      throw malformed('a sparse vector has not one value for each index');
    return vector;
  });
}

/**
 * Scores of one answer to `rerank`, and its order with places in the whole list.
 * @throws internal
 */
export function readScores(answer: PartAnswer, topN?: number): OrderedPart {
  const { part, result } = answer;
  const scores = readNumbers(listOf(answer, 'scores'));
  const scoreOf = (index: number) => scores[index] ?? -Infinity;
  // RCP lets a server leave the order out.
  const order = Array.isArray(result['order'])
    ? readNumbers(result['order'])
    : scores.map((_, index) => index).sort((a, b) => scoreOf(b) - scoreOf(a) || a - b);
  const isPlace = (index: number) => Number.isInteger(index) && index >= 0 && index < scores.length;
  const isWhole = order.length >= Math.min(topN ?? Infinity, scores.length) && new Set(order).size === order.length;
  if (!isWhole || !order.every(isPlace)) throw malformed('order does not name each passage once');
  return { scores, order: order.map((index) => part.start + index) };
}

/**
 * The identity that the answers of one call name; undefined where they name none.
 * @throws unavailable where the server has changed its model between two requests of the call
 */
export function toldIdentity(answers: readonly PartAnswer[]): string | undefined {
  const told = answers.map(({ result }) => {
    const about = result[vendorKey] as { readonly identity?: unknown } | null | undefined;
    return typeof about?.identity === 'string' ? about.identity : undefined;
  });
  const [first] = told;
  if (told.every((identity) => identity === first)) return first;
  throw errorOf('unavailable', 'the server changed its model between two requests of this call');
}

const numberIn = (value: unknown) => (typeof value === 'number' ? value : 0);

/** What all requests of a call took together. */
export function mergeUsage(answers: readonly PartAnswer[], latencyMs: number, retries: number): Usage {
  const usages = answers.map(({ part, result }) => ({
    start: part.start,
    members: (result['usage'] ?? {}) as Readonly<Record<string, unknown>>,
  }));
  const sum = (name: string) => usages.reduce((total, { members }) => total + numberIn(members[name]), 0);
  const lists = (name: string) =>
    usages.flatMap(({ start, members }) => {
      const list = members[name];
      return Array.isArray(list) ? list.map((value: unknown) => ({ start, value })) : [];
    });
  return {
    inputTokens: sum('inputTokens'),
    truncated: lists('truncated').map(({ start, value }) => start + numberIn(value)),
    latencyMs: Math.round(latencyMs),
    queueMs: sum('queueMs'),
    computeMs: sum('computeMs'),
    devices: [
      ...new Set(usages.map(({ members }) => members['device']).filter((device) => typeof device === 'string')),
    ],
    requests: answers.length,
    retries,
    notes: [...new Set(lists('notes').map(({ value }) => String(value)))],
  };
}
