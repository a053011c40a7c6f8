/** Owns the scores of every query with every document, each from the vectors of one served method. */
import type { Served } from '../../test/support/served.ts';
import { createMaxSim } from './max-sim.ts';

/** A row per query with one score per document. */
export type Scores = Float64Array[];

/** Texts of one call: enough to keep every executor busy, few enough to keep answers small. */
const textsPerCall = 50;
/** Calls in flight. */
const callsInFlight = 2;

/** Little-endian float32, one text after the other. */
function decodeFloats(...texts: readonly string[]): Float32Array {
  const bytes = Buffer.concat(texts.map((text) => Buffer.from(text, 'base64')));
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

/** Calls `ask` with every slice of the texts, a few at a time, and `take` with each answer. */
async function forSlices<Answer>(
  texts: readonly string[],
  ask: (slice: readonly string[]) => Promise<readonly Answer[]>,
  take: (answer: Answer, index: number) => Promise<void> | void,
): Promise<void> {
  let start = 0;
  const caller = async () => {
    while (start < texts.length) {
      const first = start;
      start += textsPerCall;
      const answers = await ask(texts.slice(first, first + textsPerCall));
      for (const [offset, answer] of answers.entries()) await take(answer, first + offset);
    }
  };
  await Promise.all(Array.from({ length: callsInFlight }, caller));
}

async function collect<Answer>(
  texts: readonly string[],
  ask: (slice: readonly string[]) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  const answers = new Array<Answer>(texts.length);
  await forSlices(texts, ask, (answer, index) => {
    answers[index] = answer;
  });
  return answers;
}

/** Products of dense vectors. */
export async function denseScores(
  served: Served,
  queries: readonly string[],
  documents: readonly string[],
): Promise<Scores> {
  const vectorsOf = (kind: 'query' | 'document', texts: readonly string[]) =>
    collect(texts, async (inputs) => {
      const params = { inputs, kind, encoding: 'f32-base64' };
      return (await served.call<{ vectors: string[] }>('embed', params)).vectors.map((vector) => decodeFloats(vector));
    });
  const documentVectors = await vectorsOf('document', documents);
  return (await vectorsOf('query', queries)).map((query) =>
    Float64Array.from(documentVectors, (document) => {
      let sum = 0;
      for (let position = 0; position < query.length; position += 1) {
        sum += (query[position] ?? 0) * (document[position] ?? 0);
      }
      return sum;
    }),
  );
}

/** Products of sparse vectors. */
export async function sparseScores(
  served: Served,
  queries: readonly string[],
  documents: readonly string[],
): Promise<Scores> {
  const termsOf = (kind: 'query' | 'document', texts: readonly string[]) =>
    collect(texts, async (slice) => {
      const result = await served.call<{ sparse: { indices: number[]; values: number[] }[] }>('embed/sparse', {
        texts: slice,
        kind,
      });
      return result.sparse.map(({ indices, values }) => new Map(indices.map((term, i) => [term, values[i] ?? 0])));
    });
  const documentTerms = await termsOf('document', documents);
  return (await termsOf('query', queries)).map((query) =>
    Float64Array.from(documentTerms, (document) => {
      let sum = 0;
      for (const [term, weight] of query) sum += weight * (document.get(term) ?? 0);
      return sum;
    }),
  );
}

/** MaxSim sums of token rows; rows of documents are dropped as soon as they are scored. */
export async function multiScores(
  served: Served,
  queries: readonly string[],
  documents: readonly string[],
): Promise<Scores> {
  let dimension = 0;
  const rowsOf = async (inputs: readonly string[], kind: 'query' | 'document') => {
    const result = await served.call<{ matrices: string[][]; dimension: number }>('embed/multi', {
      inputs,
      kind,
      encoding: 'f32-base64',
    });
    dimension = result.dimension;
    return result.matrices.map((rows) => decodeFloats(...rows));
  };
  const queryRows = await collect(queries, (slice) => rowsOf(slice, 'query'));
  const score = await createMaxSim(queryRows, dimension);
  const scores = queries.map(() => new Float64Array(documents.length));
  await forSlices(
    documents,
    (slice) => rowsOf(slice, 'document'),
    async (rows, index) => {
      for (const [query, value] of (await score(rows)).entries()) (scores[query] ?? [])[index] = value;
    },
  );
  return scores;
}
