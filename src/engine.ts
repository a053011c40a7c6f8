/** Owns opening the models: folders to tasks, loads and proofs, everything a server needs to start executors. */
import { environment } from './config/environment.ts';
import { readHubSettings } from './config/hub.ts';
import type { Settings } from './config/settings.ts';
import { forkExecutor, type LaunchExecutor } from './device/channel.ts';
import type { ProofRun } from './device/proof.ts';
import { ConfigurationError } from './errors.ts';
import type { ModelLoad } from './executor/protocol.ts';
import { bundledModelsDir } from './model/bundled.ts';
import { describeConversion } from './model/conversion-text.ts';
import { precisionLabel } from './model/convert/steps.ts';
import { thisCpu, type DeviceAbilities } from './model/graph-variant.ts';
import { identityOf, type ModelManifest } from './model/manifest.ts';
import { prepareModels } from './model/prepare.ts';
import { resolveModels, type LocateModel, type ServedModels } from './model/registry.ts';
import { proofRunsOf } from './proof.ts';
import type { Reranker, ServedModel, ServedTasks } from './task/context.ts';
import { openServedModel } from './task/served-model.ts';
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

/** What is told while models are opened. */
export interface EngineLog {
  info(facts: object, message: string): void;
  warn(message: string): void;
}

/**
 * Opens every configured model, without running one yet.
 * @throws ConfigurationError that names every problem
 */
export async function openEngine(settings: Settings, executorEntry: string, log: EngineLog): Promise<Engine> {
  const device = thisCpu;
  const models = await resolveModels(
    { ...settings, modelsDir: settings.modelsDir ?? bundledModelsDir },
    locateWith(settings, device, log),
    device,
  );
  // Before anything is prepared: a conversion is why a first start takes its time.
  for (const model of models.all) log.info(factsOf(model), 'serving a model');
  const loads = await prepareModels(models.all, settings.cacheDir, device);
  const warn = (message: string): void => {
    log.warn(message);
  };
  const tokenizers = new Map<string, TextTokenizer>();
  const proofRuns: ProofRun[] = [];
  for (const model of models.all) {
    const tokenizer = await loadTokenizer({ modelFolder: model.folder, maxTokens: model.maxTokens, warn });
    tokenizers.set(model.modelId, tokenizer);
    proofRuns.push(...(await proofRunsOf(model, tokenizer)));
  }
  return {
    tasks: await serveTasks(models, tokenizers),
    loads,
    proofRuns,
    launch: forkExecutor(executorEntry),
    precision: [...new Set(models.all.map((model) => model.precision))].join('+'),
  };
}

/** What the log says of a model. */
function factsOf(model: ModelManifest): object {
  const steps = model.conversion ?? [];
  return {
    model: model.modelId,
    precision: precisionLabel(model.precision, steps),
    graph: model.graphPath,
    converted: describeConversion(steps),
    heads: model.heads,
  };
}

/** Finds models on the hub. Loaded with the first such name: most starts need no downloader and none of its settings. */
function locateWith({ offline, precision }: Settings, device: DeviceAbilities, log: EngineLog): LocateModel {
  let locator: Promise<LocateModel> | null = null;
  return async (setting) => {
    locator ??= import('./model/hub/locate.ts').then(({ createLocator, openHub }) => {
      const { cacheDir, ...connection } = readHubSettings(environment);
      const report = (line: string): void => {
        log.info({}, line);
      };
      const hub = openHub({ connection, cacheDir, report });
      return createLocator({ hub, isOffline: offline, wanted: precision, device });
    });
    return (await locator)(setting);
  };
}

async function serveTasks(models: ServedModels, tokenizers: ReadonlyMap<string, TextTokenizer>): Promise<ServedTasks> {
  const serve = (
    manifests: readonly ModelManifest[],
    pooling: (model: ModelManifest) => string,
  ): Promise<ServedModel[]> =>
    Promise.all(
      manifests.map(async (manifest) => {
        const tokenizer = tokenizers.get(manifest.modelId);
        if (tokenizer === undefined) throw new Error(`no tokenizer was loaded for ${manifest.modelId}`);
        return openServedModel(manifest, tokenizer, identityOf(manifest, pooling(manifest)));
      }),
    );
  const multiVector = await serve(models.multiVector, () => 'tokens');
  const rankers = await serve(models.rerank, ({ yesNo }) => (yesNo === null ? 'logit' : 'yes-no'));
  const isGenerative = ({ manifest }: ServedModel): boolean => manifest.yesNo !== null;
  const by = (method: Reranker['method'], served: readonly ServedModel[]): Reranker[] =>
    served.map((model) => ({ method, served: model }));
  return {
    embed: await serve(models.embed, poolingOf),
    sparseEmbed: await serve(models.sparseEmbed, ({ sparse }) => (sparse?.form === 'tokens' ? 'lexical' : 'splade')),
    multiVector,
    rerankers: [
      ...by(
        'cross-encoder',
        rankers.filter((model) => !isGenerative(model)),
      ),
      ...by('llm', rankers.filter(isGenerative)),
      ...by('colbert', multiVector),
    ],
  };
}

function poolingOf(model: ModelManifest): string {
  if (model.pooling === null) throw new ConfigurationError([`${model.modelId} has no pooling and cannot serve embed`]);
  return model.pooling;
}
