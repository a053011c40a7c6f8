/** Owns the recipe for the encoder's own rows: texts to one vector per token, as they are before any pooling. */
import { ServiceError } from '../errors.ts';
import type { ServedModel, TaskContext } from './context.ts';
import { runRows, type AnswerBound, type MultiEmbedded } from './multi-vector.ts';
import type { TextsToRun } from './run-texts.ts';

/**
 * Refuses a model whose graph shows a pooled vector only.
 * @throws unsupportedOption
 */
function checkHiddenRows({ manifest }: Pick<ServedModel, 'manifest'>): void {
  const { modelId, hiddenOutput } = manifest;
  if (hiddenOutput !== undefined) return;
  const message = `${modelId}: its graph gives one vector for a text and no rows of its tokens; use another model`;
  throw new ServiceError('unsupportedOption', message, { option: modelId });
}

/**
 * The rows of each text: one per token, special ones included, neither pooled nor projected nor scaled.
 * @throws as runTexts; unsupportedOption (the model has no rows); tooLarge before any run, where the answer could
 * exceed its bound
 */
export async function hiddenRows(
  served: ServedModel,
  input: TextsToRun,
  bound: AnswerBound,
  context: TaskContext,
): Promise<MultiEmbedded> {
  checkHiddenRows(served);
  return runRows(served, 'hidden', served.manifest.hiddenSize, input, bound, context);
}
