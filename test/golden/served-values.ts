/** Owns the comparison of a served process with the golden files: what it measures, not what is enough. */
import type { Served } from '../support/served.ts';
import {
  cosine,
  decodeFloats,
  readGolden,
  termsOf,
  type GoldenDense,
  type GoldenRerank,
  type GoldenRows,
  type GoldenSparse,
  type Terms,
} from './golden-values.ts';

interface Usage {
  readonly inputTokens: number;
  readonly truncated: readonly number[];
}

/** Served dense vectors beside the golden ones. */
export async function measureDense(served: Served) {
  const golden = readGolden<GoldenDense>('minilm.embed');
  const { vectors, usage } = await served.call<{ vectors: string[]; usage: Usage }>('embed', {
    inputs: golden.map(({ text }) => text),
    encoding: 'f32-base64',
  });
  const cosines = golden.map(({ text, vector }, index) => ({
    text,
    cosine: cosine(decodeFloats(vector), decodeFloats(vectors[index] ?? '')),
  }));
  return { golden, cosines, usage };
}

/** Served rows beside the golden ones, for one kind. */
export async function measureRows(served: Served, kind: 'query' | 'document') {
  const golden = readGolden<GoldenRows>('minilm.embed-multi').filter((line) => line.kind === kind);
  const { matrices, dimension } = await served.call<{ matrices: string[][]; dimension: number }>('embed/multi', {
    inputs: golden.map(({ text }) => text),
    kind,
    encoding: 'f32-base64',
  });
  return golden.map(({ text, rows, matrix }, index) => {
    const expected = decodeFloats(matrix);
    const found = matrices[index] ?? [];
    const cosines = found.map((row, position) =>
      cosine(decodeFloats(row), expected.subarray(position * dimension, (position + 1) * dimension)),
    );
    return { text, expectedRows: rows, rows: found.length, cosines };
  });
}

/** Served terms beside the golden ones. */
export async function measureSparse(served: Served) {
  const golden = readGolden<GoldenSparse>('splade.embed-sparse');
  const { sparse, usage } = await served.call<{ sparse: { indices: number[]; values: number[] }[]; usage: Usage }>(
    'embed/sparse',
    { texts: golden.map(({ text }) => text) },
  );
  const texts = golden.map((line, index) => ({
    text: line.text,
    expected: termsOf(line),
    found: termsOf(sparse[index] ?? { indices: [], values: [] }),
  }));
  return { golden, texts, usage };
}

/** Largest difference of two weights of one term; a missing term weighs nothing. */
export function largestDifference(left: Terms, right: Terms): number {
  const terms = new Set([...left.keys(), ...right.keys()]);
  return Math.max(0, ...[...terms].map((term) => Math.abs((left.get(term) ?? 0) - (right.get(term) ?? 0))));
}

/** Weights of the terms that only one of the two has. */
export function weightsOfOne(left: Terms, right: Terms): number[] {
  const only = (one: Terms, other: Terms) => [...one].flatMap(([term, weight]) => (other.has(term) ? [] : [weight]));
  return [...only(left, right), ...only(right, left)];
}

/** Served colbert scores beside the golden ones. */
export async function measureRerank(served: Served) {
  const golden = readGolden<GoldenRerank>('minilm.rerank-colbert');
  const lines = [];
  for (const { query, passages, scores } of golden) {
    const found = await served.call<{ scores: number[]; order: number[] }>('rerank', { query, passages });
    lines.push({ query, expected: scores, ...found });
  }
  return lines;
}
