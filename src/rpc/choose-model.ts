/** Owns which of the served models a call gets. */
import { ServiceError } from '../errors.ts';
import type { Reranker, ServedModel } from '../task/context.ts';

/**
 * The named model, or the first where none is named.
 * @throws unsupportedOption that lists the names
 */
export function chooseModel(models: readonly ServedModel[], name: string | null, field: string): ServedModel {
  const supported = models.map(({ manifest }) => manifest.modelId);
  const chosen = name === null ? models[0] : models[supported.indexOf(name)];
  if (chosen !== undefined) return chosen;
  // The gate has checked the capability, so a method without any model is a bug.
  if (name === null) throw new Error('a method without a model passed the gate');
  throw unknownModel(name, supported, field);
}

/** The error of a model that is not served. */
export function unknownModel(name: string, supported: readonly string[], field: string): ServiceError {
  const message = `${field}: this model is not offered; use one of ${supported.join(', ')}`;
  return new ServiceError('unsupportedOption', message, { option: name, field, supported });
}

/**
 * The first reranker of this method, or of any where it is null, that has the named model, or any where none is named.
 * @throws unsupportedOption that lists the names, field `model`
 */
export function chooseReranker(rerankers: readonly Reranker[], method: string | null, model: string | null): Reranker {
  const candidates = rerankers.filter((candidate) => method === null || candidate.method === method);
  const served = chooseModel(
    candidates.map((candidate) => candidate.served),
    model,
    'model',
  );
  const reranker = candidates.find((candidate) => candidate.served === served);
  if (reranker === undefined) throw new Error('a model was chosen that is none of the candidates');
  return reranker;
}
