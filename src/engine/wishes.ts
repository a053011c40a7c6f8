/** Owns where the models of each use are wished to run, and how it is said that a wish cannot be had. */
import type { Settings } from '../config/settings.ts';
import { ConfigurationError } from '../errors.ts';
import type { ModelUse } from '../model/role.ts';

/** The devices that each use asks for, in the grammar of `--device`. */
export type Wishes = Readonly<Record<ModelUse, readonly string[]>>;

/** A use's own wish, else the one for all. */
export const wishesOf = ({ device, embedDevice, sparseDevice, multiDevice, rerankDevice }: Settings): Wishes => ({
  embed: embedDevice ?? device,
  sparseEmbed: sparseDevice ?? device,
  multiVector: multiDevice ?? device,
  rerank: rerankDevice ?? device,
});

/** Uses that have models. */
export function usesOf({ embedModel, sparseModel, multiModel, rerankModel }: Settings): ModelUse[] {
  const names = { embed: embedModel, sparseEmbed: sparseModel, multiVector: multiModel, rerank: rerankModel };
  return (Object.keys(names) as ModelUse[]).filter((use) => names[use].length > 0);
}

/** Name of the setting that says where a use runs. */
const deviceSettings: Readonly<Record<ModelUse, string>> = {
  embed: 'embed-device',
  sparseEmbed: 'sparse-device',
  multiVector: 'multi-device',
  rerank: 'rerank-device',
};

/**
 * The same problem of several uses is told once, by the setting that they share.
 * @throws ConfigurationError where there is one
 */
export function refuseWishes(problems: readonly { readonly wish: ModelUse; readonly problem: string }[]): void {
  if (problems.length === 0) return;
  const wishesByProblem = new Map<string, ModelUse[]>();
  for (const { wish, problem } of problems)
    wishesByProblem.set(problem, [...(wishesByProblem.get(problem) ?? []), wish]);
  throw new ConfigurationError(
    [...wishesByProblem].map(([problem, [first, ...others]]) => {
      const name = first === undefined || others.length > 0 ? 'device' : deviceSettings[first];
      return `${name}: ${problem}`;
    }),
  );
}
