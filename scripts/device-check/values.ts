/** Owns the values of the golden texts: asking a server for them, and comparing them with the stored ones. */
import {
  cosine,
  decodeFloats,
  readGolden,
  type GoldenDense,
  type GoldenRerank,
  type GoldenRows,
  type GoldenSparse,
} from '../../test/golden/golden-values.ts';
import type { Served } from '../../test/support/served.ts';
import { inGrowingSlices, type TimeBudget } from './budget.ts';

/** What a text gives: one vector, one for each token, or the scores of its passages. */
export type Value = readonly Float32Array[];

/** A golden text, and how to ask for its value. */
interface Question {
  readonly characters: number;
  readonly params: Readonly<Record<string, unknown>>;
  readonly expected: Value;
}

/** A kind of value that has golden ones. */
export interface ValueKind {
  readonly name: 'dense' | 'sparse' | 'rows' | 'rerank';
  /** Shortest first. */
  readonly questions: readonly Question[];
  readonly ask: (served: Served, questions: readonly Question[]) => Promise<Value[]>;
}

const vocabularySize = 30_522;

/** Terms as a vector over the vocabulary, so that all kinds are compared alike. */
function spread({ indices, values }: Pick<GoldenSparse, 'indices' | 'values'>): Float32Array {
  const vector = new Float32Array(vocabularySize);
  for (const [position, term] of indices.entries()) vector[term] = values[position] ?? Number.NaN;
  return vector;
}

function rowsOf(matrix: string, count: number): Float32Array[] {
  const values = decodeFloats(matrix);
  const dimension = values.length / count;
  return Array.from({ length: count }, (_, row) => values.subarray(row * dimension, (row + 1) * dimension));
}

const shortestFirst = (questions: readonly Question[]): Question[] =>
  [...questions].sort((a, b) => a.characters - b.characters);

const ofText = (text: string, expected: Value): Question => ({ characters: text.length, params: { text }, expected });

const textsOf = (questions: readonly Question[]) => questions.map(({ params }) => params['text']);

/** Every kind, with its golden texts. */
export function valueKinds(): ValueKind[] {
  return [
    {
      name: 'dense',
      questions: shortestFirst(
        readGolden<GoldenDense>('minilm.embed').map(({ text, vector }) => ofText(text, [decodeFloats(vector)])),
      ),
      async ask(served, questions) {
        const params = { inputs: textsOf(questions), encoding: 'f32-base64' };
        const { vectors } = await served.call<{ vectors: string[] }>('embed', params);
        return vectors.map((vector) => [decodeFloats(vector)]);
      },
    },
    {
      name: 'sparse',
      questions: shortestFirst(
        readGolden<GoldenSparse>('splade.embed-sparse').map((line) => ofText(line.text, [spread(line)])),
      ),
      async ask(served, questions) {
        const params = { texts: textsOf(questions) };
        const { sparse } = await served.call<{ sparse: GoldenSparse[] }>('embed/sparse', params);
        return sparse.map((terms) => [spread(terms)]);
      },
    },
    {
      name: 'rows',
      questions: shortestFirst(
        readGolden<GoldenRows>('minilm.embed-multi')
          .filter(({ kind }) => kind === 'document')
          .map(({ text, matrix, rows }) => ofText(text, rowsOf(matrix, rows))),
      ),
      async ask(served, questions) {
        const params = { inputs: textsOf(questions), kind: 'document', encoding: 'f32-base64' };
        const { matrices } = await served.call<{ matrices: string[][] }>('embed/multi', params);
        return matrices.map((rows) => rows.map(decodeFloats));
      },
    },
    {
      name: 'rerank',
      questions: shortestFirst(
        readGolden<GoldenRerank>('minilm.rerank-colbert').map(({ query, passages, scores }) => ({
          characters: query.length + passages.join('').length,
          params: { query, passages },
          expected: [Float32Array.from(scores)],
        })),
      ),
      ask: (served, questions) =>
        Promise.all(
          questions.map(async ({ params }) => [
            Float32Array.from((await served.call<{ scores: number[] }>('rerank', params)).scores),
          ]),
        ),
    },
  ];
}

/** The values of as many texts as fit into the time, shortest first. */
export async function askValues(served: Served, kind: ValueKind, budget: TimeBudget): Promise<Value[]> {
  const values: Value[] = [];
  await inGrowingSlices(
    kind.questions,
    ({ characters }) => characters,
    budget,
    async (slice) => {
      values.push(...(await kind.ask(served, slice)));
    },
  );
  return values;
}

/** How alike two lists of values are, as far as both have them. */
export interface Likeness {
  readonly count: number;
  /** Least of any vector; two that are zero are alike. NaN where the shapes differ. */
  readonly minCosine: number;
  readonly maxDifference: number;
}

const cosineOf = (left: Float32Array, right: Float32Array): number =>
  left.length === right.length && !left.some(Boolean) && !right.some(Boolean) ? 1 : cosine(left, right);

/** Compares value with value. */
export function likenessOf(left: readonly Value[], right: readonly Value[]): Likeness {
  const count = Math.min(left.length, right.length);
  let minCosine = 1;
  let maxDifference = 0;
  for (let index = 0; index < count; index += 1) {
    const [mine, other] = [left[index] ?? [], right[index] ?? []];
    if (mine.length !== other.length) return { count, minCosine: Number.NaN, maxDifference: Number.NaN };
    for (const [row, vector] of mine.entries()) {
      const beside = other[row] ?? new Float32Array();
      minCosine = Math.min(minCosine, cosineOf(vector, beside));
      for (const [at, value] of vector.entries()) {
        maxDifference = Math.max(maxDifference, Math.abs(value - (beside[at] ?? Number.NaN)));
      }
    }
  }
  return { count, minCosine, maxDifference };
}
