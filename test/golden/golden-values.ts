/** Owns reading the golden files, and the measures by which served values are compared with them. */
import { readFileSync } from 'node:fs';

/** Dense vector of a text. */
export interface GoldenDense {
  readonly text: string;
  readonly ids: readonly number[];
  readonly tokensBeforeTruncation: number;
  readonly vector: string;
}

/** Rows of a text. */
export interface GoldenRows {
  readonly text: string;
  readonly kind: 'query' | 'document';
  readonly rows: number;
  readonly matrix: string;
}

/** Weighted terms of a text. */
export interface GoldenSparse {
  readonly text: string;
  readonly tokensBeforeTruncation: number;
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

/** Scores of passages. */
export interface GoldenRerank {
  readonly query: string;
  readonly passages: readonly string[];
  readonly scores: readonly number[];
}

/** Every line of a golden file but the first, which says what made it. */
export function readGolden<Line>(name: string): Line[] {
  const [, ...lines] = readFileSync(new URL(`data/${name}.jsonl`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');
  return lines.map((line) => JSON.parse(line) as Line);
}

/** Little-endian float32 in base64. */
export function decodeFloats(base64: string): Float32Array {
  const bytes = Buffer.from(base64, 'base64');
  return Float32Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
}

/** Sum of products. */
export function dot(left: Float32Array, right: Float32Array): number {
  return left.reduce((sum, value, index) => sum + value * (right[index] ?? Number.NaN), 0);
}

/** Cosine; NaN where the lengths differ. */
export function cosine(left: Float32Array, right: Float32Array): number {
  if (left.length !== right.length) return Number.NaN;
  return dot(left, right) / Math.sqrt(dot(left, left) * dot(right, right));
}

/** Mean of numbers. */
export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Terms and their weights. */
export type Terms = ReadonlyMap<number, number>;

/** Parallel lists as terms. */
export const termsOf = (sparse: { readonly indices: readonly number[]; readonly values: readonly number[] }): Terms =>
  new Map(sparse.indices.map((term, position) => [term, sparse.values[position] ?? Number.NaN]));

const norm = (terms: Terms): number => Math.sqrt([...terms.values()].reduce((sum, weight) => sum + weight ** 2, 0));

/** Cosine of two weighted terms lists; two empty ones are equal. */
export function termCosine(left: Terms, right: Terms): number {
  if (left.size === 0 && right.size === 0) return 1;
  let sum = 0;
  for (const [term, weight] of left) sum += weight * (right.get(term) ?? 0);
  return sum / (norm(left) * norm(right));
}

/** Words between blanks. */
export const wordCount = (text: string): number =>
  text
    .trim()
    .split(/\s+/u)
    .filter((word) => word !== '').length;
