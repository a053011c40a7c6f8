/** Owns the sparse recipe: texts to weighted terms. */
import type { ServedModel, TaskContext, TaskUsage } from './context.ts';
import { runTexts, type TextsToRun } from './run-texts.ts';

/** The terms of one text, ascending, each weight above zero. */
export interface SparseVector {
  readonly indices: Int32Array;
  readonly values: Float32Array;
}

/** Sparse vectors in input order. */
export interface SparseEmbedded {
  readonly sparse: readonly SparseVector[];
  readonly usage: TaskUsage;
}

/**
 * The weighted terms of each text.
 * @throws as runTexts
 */
export async function sparseEmbed(
  served: ServedModel,
  input: TextsToRun,
  context: TaskContext,
): Promise<SparseEmbedded> {
  const { rows, usage } = await runTexts(served, 'sparse', input, context);
  return { sparse: rows.map(({ indices, values }) => ({ indices: indices ?? new Int32Array(), values })), usage };
}
