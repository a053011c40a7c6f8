/** Owns the dense recipe: texts to one vector each. */
import { invalidField, ServiceError } from '../errors.ts';
import type { ModelManifest } from '../model/manifest.ts';
import { center, cutAndNormalize } from '../tensor/slice.ts';
import type { ServedModel, TaskContext, TaskUsage } from './context.ts';
import { runTexts, type TextsToRun, type TokenCounts } from './run-texts.ts';

/** Dense vectors in input order. */
export interface Embedded {
  readonly vectors: readonly Float32Array[];
  readonly dimension: number;
  readonly tokenCounts: TokenCounts;
  readonly usage: TaskUsage;
}

/**
 * One vector per text, cut to `dimensions`, which `checkDimensions` has allowed.
 * @throws as runTexts
 */
export async function embed(
  served: ServedModel,
  input: TextsToRun,
  dimensions: number | null,
  context: TaskContext,
): Promise<Embedded> {
  const { dimension, matryoshka } = served.manifest;
  const { rows, tokenCounts, usage } = await runTexts(served, 'dense', input, context);
  const isCut = dimensions !== null && dimensions < dimension;
  const wholeOf = ({ values }: { values: Float32Array }) => (matryoshka.isCentered ? center(values) : values);
  const vectors = rows.map((row) => (isCut ? cutAndNormalize(wholeOf(row), dimensions) : row.values));
  return { vectors, dimension: dimensions ?? dimension, tokenCounts, usage };
}

/**
 * Refuses a cut that the model does not allow; a step of its own, because options are judged before limits.
 * @throws unsupportedOption (the model is not matryoshka), invalidParams (more dimensions than it has)
 */
export function checkDimensions(
  model: Pick<ModelManifest, 'dimension' | 'isMatryoshka' | 'modelId'>,
  dimensions: number | null,
  field = 'x-trivec.dimensions',
): void {
  if (dimensions === null) return;
  const { dimension, isMatryoshka, modelId } = model;
  if (!isMatryoshka && dimensions !== dimension) {
    throw new ServiceError('unsupportedOption', `${field}: vectors of ${modelId} cannot be cut; leave it out`, {
      option: String(dimensions),
      field,
    });
  }
  if (dimensions > dimension) {
    throw invalidField(field, `is ${dimensions}, the model has ${dimension}`, {
      limit: dimension,
      received: dimensions,
    });
  }
}
