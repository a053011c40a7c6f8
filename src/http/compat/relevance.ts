/** Owns the score of a ranked text as other services' clients read it. */
import type { ResultOf } from '../../rpc/task-request.ts';

/**
 * The score at a place: a cross-encoder's as it is; a sum over the rows of the query as their mean. Those rows have
 * length 1, so that the mean is one of cosines: what rounding puts beyond -1 and 1 is taken away.
 */
export function relevanceOf(
  { scores, queryRows }: Pick<ResultOf<'rerank'>, 'scores' | 'queryRows'>,
  index: number,
): number {
  const score = scores[index] ?? 0;
  return queryRows === null ? score : Math.max(-1, Math.min(1, score / queryRows));
}
