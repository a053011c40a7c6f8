/** Owns what a model is for: its role by its files, and whether that fits the use it is configured for. */
import type { AddedHead } from '../executor/protocol.ts';
import { originalColbert } from './colbert-files.ts';
import type { FolderConfig } from './config-file.ts';
import type { ModuleChain } from './modules.ts';

/** What a model is by its files. */
export type ModelRole = 'encoder' | 'maskedLanguageModel' | 'crossEncoder' | 'causalLanguageModel';

/** What a model is configured for. */
export type ModelUse = 'embed' | 'sparseEmbed' | 'multiVector' | 'rerank';

/** What the catalogue adds to a role. */
export interface Abilities {
  /** Whether an encoder has a weight for each token. */
  readonly hasTokenWeights: boolean;
  /** Whether a causal language model ranks by the logits of two words. */
  readonly answersYesNo: boolean;
}

interface UseRule {
  readonly setting: string;
  readonly role: ModelRole;
  readonly heads: readonly AddedHead[];
  /** Whether another role will do, too. */
  readonly fits?: (role: ModelRole, abilities: Abilities) => boolean;
}

/** For each use its setting, the role it needs and the heads it runs. */
export const useRules: Readonly<Record<ModelUse, UseRule>> = {
  embed: { setting: 'embed-model', role: 'encoder', heads: ['dense'] },
  sparseEmbed: {
    setting: 'sparse-model',
    role: 'maskedLanguageModel',
    heads: ['sparse'],
    fits: (role, { hasTokenWeights }) => role === 'encoder' && hasTokenWeights,
  },
  multiVector: { setting: 'multi-model', role: 'encoder', heads: ['rows', 'maxSim'] },
  rerank: {
    setting: 'rerank-model',
    role: 'crossEncoder',
    heads: ['logit'],
    fits: (role, { answersYesNo }) => role === 'causalLanguageModel' && answersYesNo,
  },
};

/** How each role is called in a message. */
export const roleNames: Readonly<Record<ModelRole, string>> = {
  encoder: 'a text encoder',
  maskedLanguageModel: 'a masked language model',
  crossEncoder: 'a sequence classifier',
  causalLanguageModel: 'a causal language model',
};

/** The role by the modules where they say, else by the architecture; null for one that cannot be served. */
export function roleOf({ architecture }: Pick<FolderConfig, 'architecture'>, { makes }: ModuleChain): ModelRole | null {
  if (makes === 'vector' || makes === 'rows') return 'encoder';
  if (makes === 'terms') return 'maskedLanguageModel';
  if (architecture === originalColbert) return 'encoder';
  if (architecture.endsWith('ForSequenceClassification')) return 'crossEncoder';
  if (architecture.endsWith('ForMaskedLM')) return 'maskedLanguageModel';
  if (architecture.endsWith('ForCausalLM')) return 'causalLanguageModel';
  return architecture.endsWith('Model') ? 'encoder' : null;
}

/** What a rule needs of a model of a role that nearly fits. */
function needOf({ role: usual, fits }: UseRule, role: ModelRole): string {
  // With the catalogue's help it would fit.
  const isRankable = role === 'causalLanguageModel' && fits?.(role, { hasTokenWeights: false, answersYesNo: true });
  if (isRankable !== true) return roleNames[usual];
  return `${roleNames[usual]}, or a "yesNo" entry for this model in the catalog.json beside its folder`;
}

/** What is wrong with the uses of a model of this role; nothing where it fits all of them. */
export function misfits(
  modelId: string,
  role: ModelRole,
  abilities: Abilities,
  uses: readonly ModelUse[],
  outputs: string,
): string[] {
  return uses
    .map((use) => useRules[use])
    .filter((rule) => rule.role !== role && rule.fits?.(role, abilities) !== true)
    .map(
      (rule) =>
        `${rule.setting}: ${modelId} is ${roleNames[role]} (outputs: ${outputs}), ` +
        `but this setting needs ${needOf(rule, role)}`,
    );
}

/** The heads of all uses, each once, in the order of the uses. */
export function headsOf(uses: readonly ModelUse[]): AddedHead[] {
  return [...new Set(uses.flatMap((use) => useRules[use].heads))];
}
