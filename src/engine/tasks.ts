/** Owns the way from opened models to the tasks that they serve, in the order of the settings. */
import { ConfigurationError } from '../errors.ts';
import { identityOf, type ModelManifest } from '../model/manifest.ts';
import type { ServedModels } from '../model/registry.ts';
import type { ModelUse } from '../model/role.ts';
import type { Reranker, ServedModel, ServedTasks } from '../task/context.ts';
import { openServedModel } from '../task/served-model.ts';
import type { OpenedGroup } from './group.ts';

/** What names the way to the values in `identity`. */
const poolings: Readonly<Record<ModelUse, (model: ModelManifest) => string>> = {
  embed({ modelId, pooling }) {
    if (pooling === null) throw new ConfigurationError([`${modelId} has no pooling and cannot serve embed`]);
    return pooling;
  },
  sparseEmbed: ({ sparse }) => (sparse?.form === 'tokens' ? 'lexical' : 'splade'),
  multiVector: () => 'tokens',
  rerank: ({ yesNo }) => (yesNo === null ? 'logit' : 'yes-no'),
};

const noModels: ServedModels = { embed: [], sparseEmbed: [], multiVector: [], rerank: [], all: [] };

/**
 * Every use with its models.
 * @throws ConfigurationError
 */
export async function serveTasks(groups: readonly OpenedGroup[]): Promise<ServedTasks> {
  const serve = (use: ModelUse): Promise<ServedModel[]> => {
    const group = groups.find(({ uses }) => uses.includes(use));
    const manifests = (group?.models ?? noModels)[use];
    return Promise.all(
      manifests.map(async (manifest) => {
        const tokenizer = group?.tokenizers.get(manifest.modelId);
        if (tokenizer === undefined) throw new Error(`no tokenizer was loaded for ${manifest.modelId}`);
        return openServedModel(manifest, tokenizer, identityOf(manifest, poolings[use](manifest)));
      }),
    );
  };
  const multiVector = await serve('multiVector');
  const rankers = await serve('rerank');
  const isGenerative = ({ manifest }: ServedModel): boolean => manifest.yesNo !== null;
  const by = (method: Reranker['method'], served: readonly ServedModel[]): Reranker[] =>
    served.map((model) => ({ method, served: model }));
  const crossEncoders = rankers.filter((model) => !isGenerative(model));
  return {
    embed: await serve('embed'),
    sparseEmbed: await serve('sparseEmbed'),
    multiVector,
    rerankers: [
      ...by('cross-encoder', crossEncoders),
      ...by('llm', rankers.filter(isGenerative)),
      ...by('colbert', multiVector),
    ],
  };
}
