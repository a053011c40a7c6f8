/** Owns nDCG over the judged collection. */
import type { Judgement } from '../../test/support/corpus.ts';

/** Ranks that count. */
const cutoff = 10;

/** Grades by query and document; a document that is not there has grade 0. */
export type Grades = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** The collection's codes as grades: 1 (complete) to 4 (minimum) become 4 to 1, -1 becomes 0. */
export function gradesOf(judgements: readonly Judgement[]): Grades {
  const grades = new Map<string, Map<string, number>>();
  for (const { queryId, documentId, relevance } of judgements) {
    const ofQuery = grades.get(queryId) ?? new Map<string, number>();
    ofQuery.set(documentId, relevance < 1 ? 0 : 5 - relevance);
    grades.set(queryId, ofQuery);
  }
  return grades;
}

const discountedGain = (grades: readonly number[]): number =>
  grades.slice(0, cutoff).reduce((sum, grade, rank) => sum + (2 ** grade - 1) / Math.log2(rank + 2), 0);

/** nDCG of one ranking, best document first; 0 where nothing is relevant. */
export function ndcg(ranking: readonly string[], grades: ReadonlyMap<string, number>): number {
  const ideal = discountedGain([...grades.values()].sort((a, b) => b - a));
  return ideal === 0 ? 0 : discountedGain(ranking.slice(0, cutoff).map((id) => grades.get(id) ?? 0)) / ideal;
}

/** Mean nDCG over the queries; `scores` has a row per query with one score per document. */
export function meanNdcg(
  scores: readonly ArrayLike<number>[],
  queryIds: readonly string[],
  documentIds: readonly string[],
  grades: Grades,
): number {
  const values = queryIds.map((queryId, query) => {
    const row = scores[query] ?? [];
    const order = documentIds.map((_, index) => index).sort((a, b) => (row[b] ?? 0) - (row[a] ?? 0) || a - b);
    return ndcg(
      order.slice(0, cutoff).map((index) => documentIds[index] ?? ''),
      grades.get(queryId) ?? new Map<string, number>(),
    );
  });
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
