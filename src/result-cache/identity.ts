/** Owns what a model's rows follow from besides the text: the graph, its precision, and what runs it. */
import type { ModelLoad, ProviderChoice } from '../executor/protocol.ts';

/** Models, and the devices that run them. */
export interface ExecutionGroup {
  readonly devices: readonly { readonly provider: ProviderChoice }[];
  readonly loads: readonly ModelLoad[];
}

/**
 * Gives the identity of each loaded model: all that its executors are told of it, and on which providers. The path of a
 * prepared graph holds hashes of its weights and of its heads.
 */
export function identitiesOf(groups: readonly ExecutionGroup[]): (modelId: string) => string {
  const facts = new Map<string, unknown[]>();
  for (const { devices, loads } of groups) {
    const providers = [...new Set(devices.map(({ provider }) => provider.name))].sort();
    for (const load of loads) facts.set(load.modelId, [...(facts.get(load.modelId) ?? []), { providers, load }]);
  }
  const identities = new Map([...facts].map(([modelId, its]) => [modelId, JSON.stringify(its)]));
  return (modelId) => {
    const identity = identities.get(modelId);
    if (identity === undefined) throw new Error(`no executor was told to load ${modelId}`);
    return identity;
  };
}
