/** Owns which model a name from another service means. */
import { unknownModel } from '../../rpc/choose-model.ts';
import { readOptionalString, type Members } from '../../rpc/params.ts';
import type { ServedFacts } from '../../rpc/served-facts.ts';
import type { TaskMethod } from '../../rpc/methods.ts';

/**
 * The name where it is one of a model that serves the method; null, which means the first such model, for none and,
 * unless the operator wants served names only, for any other: clients that only change the address send the names of
 * their own service.
 * @throws invalidParams, unsupportedOption; field `model`
 */
export function requestedModel(members: Members, served: ServedFacts, method: TaskMethod): string | null {
  const name = readOptionalString(members, 'model');
  const supported = served.models.filter(({ methods }) => methods.includes(method)).map(({ model }) => model);
  if (name === null || supported.includes(name)) return name;
  if (served.modelNames !== 'served') return null;
  throw unknownModel(name, supported, 'model');
}
