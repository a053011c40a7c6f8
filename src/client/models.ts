/** Owns which of a server's models a call runs, as far as the server lists them. */
import { vendorKey, type ModelCapability, type ServedModel, type ServerInfo } from './info.ts';

/** What a call says of the model that it wants; the server's first one where it says nothing. */
export interface ModelChoice {
  readonly model?: string | undefined;
  /** Rerank only. */
  readonly method?: string | undefined;
}

/** Models of a capability, as far as the server lists them. */
export const modelsOf = (info: ServerInfo, capability: ModelCapability): readonly ServedModel[] =>
  info[vendorKey]?.models?.[capability] ?? [];

/** The first model that is as wanted; undefined where the server does not list it. */
export function findModel(
  info: ServerInfo,
  capability: ModelCapability,
  { model, method }: ModelChoice = {},
): ServedModel | undefined {
  return modelsOf(info, capability).find(
    (entry) => (model === undefined || entry.id === model) && (method === undefined || entry.method === method),
  );
}

/** Identity of the model that is as wanted; undefined where the server does not say. */
export function identityOf(
  info: ServerInfo,
  capability: ModelCapability,
  choice: ModelChoice = {},
): string | undefined {
  const offered = info.capabilities[capability];
  if (offered === undefined) return undefined;
  const { model, method } = choice;
  const { methods, models } = info.capabilities.rerank ?? {};
  // What a capability names is its default model, and nothing else.
  const isFirstModel = model === undefined || (capability === 'rerank' && model === models?.[0]);
  const isDefault = isFirstModel && (method === undefined || method === methods?.[0]);
  return findModel(info, capability, choice)?.identity ?? (isDefault ? offered.identity : undefined);
}
