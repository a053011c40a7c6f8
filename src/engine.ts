/** Owns opening the models: folders to tasks, loads and proofs, everything a server needs to start executors. */
import { environment } from './config/environment.ts';
import { readHubSettings } from './config/hub.ts';
import type { Settings } from './config/settings.ts';
import { forkExecutor, type LaunchExecutor } from './device/channel.ts';
import type { ProofRun } from './device/proof.ts';
import { ConfigurationError } from './errors.ts';
import type { ModelLoad } from './executor/protocol.ts';
import { bundledModelsDir } from './model/bundled.ts';
import { identityOf, type ModelManifest } from './model/manifest.ts';
import { prepareModels } from './model/prepare.ts';
import { resolveModels, type LocateModel, type ServedModels } from './model/registry.ts';
import { proofRunsOf } from './proof.ts';
import type { Reranker, ServedModel, ServedTasks } from './task/context.ts';
import { loadTokenizer } from './tokenize/load.ts';
import type { TextTokenizer } from './tokenize/tokenizer.ts';

/** What runs the models; tests bring one of their own. */
export interface Engine {
  readonly tasks: ServedTasks;
  readonly loads: readonly ModelLoad[];
  readonly proofRuns: readonly ProofRun[];
  readonly launch: LaunchExecutor;
  /** Label of the weights in use, for the device report. */
  readonly precision: string;
}

/**
 * Opens every configured model, without running one yet.
 * @throws ConfigurationError that names every problem
 */
export async function openEngine(
  settings: Settings,
  executorEntry: string,
  warn: (message: string) => void,
): Promise<Engine> {
  const models = await resolveModels(
    { ...settings, modelsDir: settings.modelsDir ?? bundledModelsDir },
    locateWith(settings, warn),
  );
  const loads = await prepareModels(models.all, settings.cacheDir);
  const tokenizers = new Map<string, TextTokenizer>();
  const proofRuns: ProofRun[] = [];
  for (const model of models.all) {
    const tokenizer = await loadTokenizer({ modelFolder: model.folder, maxTokens: model.maxTokens, warn });
    tokenizers.set(model.modelId, tokenizer);
    proofRuns.push(...(await proofRunsOf(model, tokenizer)));
  }
  return {
    tasks: serveTasks(models, tokenizers),
    loads,
    proofRuns,
    launch: forkExecutor(executorEntry),
    precision: [...new Set(models.all.map((model) => model.precision))].join('+'),
  };
}

/** Finds models on the hub. Loaded with the first such name: most starts need no downloader and none of its settings. */
function locateWith({ offline, precision }: Settings, report: (message: string) => void): LocateModel {
  let locator: Promise<LocateModel> | null = null;
  return async (setting) => {
    locator ??= import('./model/hub/locate.ts').then(({ createLocator, openHub }) => {
      const { cacheDir, ...connection } = readHubSettings(environment);
      return createLocator({ hub: openHub({ connection, cacheDir, report }), isOffline: offline, wanted: precision });
    });
    return (await locator)(setting);
  };
}

function serveTasks(models: ServedModels, tokenizers: ReadonlyMap<string, TextTokenizer>): ServedTasks {
  const serve = (model: ModelManifest | null, pooling: (model: ModelManifest) => string): ServedModel | null => {
    if (model === null) return null;
    const tokenizer = tokenizers.get(model.modelId);
    if (tokenizer === undefined) throw new Error(`no tokenizer was loaded for ${model.modelId}`);
    const documentSkipIds = tokenizer.idsOf(model.tokenRows.documentSkipTokens);
    return { manifest: model, tokenizer, identity: identityOf(model, pooling(model)), documentSkipIds };
  };
  const multiVector = serve(models.multiVector, () => 'tokens');
  const crossEncoder = serve(models.rerank, () => 'logit');
  const rerankers: Reranker[] = [
    ...(crossEncoder === null ? [] : [{ method: 'cross-encoder' as const, served: crossEncoder }]),
    ...(multiVector === null ? [] : [{ method: 'colbert' as const, served: multiVector }]),
  ];
  return {
    embed: serve(models.embed, (model) => poolingOf(model)),
    sparseEmbed: serve(models.sparseEmbed, () => 'splade'),
    multiVector,
    rerankers,
  };
}

function poolingOf(model: ModelManifest): string {
  if (model.pooling === null) throw new ConfigurationError([`${model.modelId} has no pooling and cannot serve embed`]);
  return model.pooling;
}
