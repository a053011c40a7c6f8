/** Owns the multi-vector recipe: texts to one vector per kept token. */
import { ServiceError } from '../errors.ts';
import type { Matrix } from '../executor/protocol.ts';
import type { ServedModel, TaskContext, TaskUsage } from './context.ts';
import { runTexts, type TextsToRun, type TokenCounts } from './run-texts.ts';

/** Matrices in input order. */
export interface MultiEmbedded {
  readonly matrices: readonly Matrix[];
  readonly dimension: number;
  readonly tokenCounts: TokenCounts;
  readonly usage: TaskUsage;
}

/** Bound of an answer, and what one row adds to it. @unit bytes */
export interface AnswerBound {
  readonly maxAnswerBytes: number;
  readonly maxRowBytes: number;
}

/**
 * The rows of each text; documents leave out the model's skip tokens, queries leave out none.
 * @throws as runTexts; tooLarge before any run, where the answer could exceed its bound
 */
export async function multiVector(
  served: ServedModel,
  input: TextsToRun,
  bound: AnswerBound,
  context: TaskContext,
): Promise<MultiEmbedded> {
  return runRows(served, 'rows', served.manifest.rowDimension, input, bound, context);
}

/**
 * The matrix that a head with rows gives for each text.
 * @throws as runTexts; tooLarge before any run, where the answer could exceed its bound
 */
export async function runRows(
  served: ServedModel,
  head: 'rows' | 'hidden',
  dimension: number,
  input: TextsToRun,
  bound: AnswerBound,
  context: TaskContext,
): Promise<MultiEmbedded> {
  const checkTokens = (tokens: number) => {
    checkAnswerSize(tokens * bound.maxRowBytes, bound.maxAnswerBytes);
  };
  const { rows, tokenCounts, usage } = await runTexts(served, head, { ...input, checkTokens }, context);
  return { matrices: rows.map(({ values }) => ({ values, dimension })), dimension, tokenCounts, usage };
}

function checkAnswerSize(estimatedBytes: number, maxAnswerBytes: number): void {
  if (estimatedBytes <= maxAnswerBytes) return;
  const message = `The answer could take ${estimatedBytes} bytes, the limit is ${maxAnswerBytes}; send fewer inputs`;
  throw new ServiceError('tooLarge', message, { limit: maxAnswerBytes, received: estimatedBytes });
}
