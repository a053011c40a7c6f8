/** Owns the making of a manifest from a model's folder in the Hugging Face layout. */
import { basename } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { readCatalogEntry } from './catalog.ts';
import { readFolderConfig } from './config-file.ts';
import type { FolderConfig } from './config-file.ts';
import { gather, refuse } from './gather.ts';
import { graphProblems, showOutputs } from './graph-check.ts';
import { findGraphFile } from './graph-file.ts';
import type { GraphFile } from './graph-file.ts';
import type { ModelManifest, Precision } from './manifest.ts';
import { readModules } from './modules.ts';
import type { ModuleChain } from './modules.ts';
import { headsOf, misfits, roleOf } from './role.ts';
import type { ModelRole, ModelUse } from './role.ts';
import { readSelfChecks } from './self-check-file.ts';

/** Digits of the sha256 that make the revision. */
const revisionDigits = 12;

/** What is wrong with a model of this role, apart from its graph. */
function configProblems(modelId: string, role: ModelRole, config: FolderConfig, modules: ModuleChain): string[] {
  return [
    ...(config.maxTokens === null ? [`${modelId}: no file states a believable limit of tokens`] : []),
    ...(role === 'encoder' && modules.pooling === null
      ? [`${modelId}: modules.json names no Pooling module, so how rows become a vector is not known`]
      : []),
    ...(role === 'crossEncoder' && config.labels !== 1
      ? [`rerank-model: ${modelId} has ${String(config.labels)} labels, a reranker has one`]
      : []),
  ];
}

function checkFit(
  modelId: string,
  role: ModelRole,
  uses: readonly ModelUse[],
  config: FolderConfig,
  modules: ModuleChain,
  file: GraphFile,
): void {
  const wrongUses = misfits(modelId, role, uses, showOutputs(file.graph));
  // A model in the wrong place is one mistake: what its graph lacks for the right one is no news.
  if (wrongUses.length > 0) throw new ConfigurationError(wrongUses);
  const wrongGraph = graphProblems(file.graph, role, config).map((problem) => `${file.path}: ${problem}`);
  refuse([...configProblems(modelId, role, config, modules), ...wrongGraph]);
}

/**
 * The manifest of the model in `folder` for these uses, known as `modelId`.
 * @throws ConfigurationError with everything that keeps it from being served
 */
export async function readModelFolder(
  folder: string,
  uses: readonly ModelUse[],
  precision: Precision | 'auto',
  modelId: string = basename(folder),
): Promise<ModelManifest> {
  const reads = [readFolderConfig(folder), readModules(folder), readCatalogEntry(folder)] as const;
  await gather<unknown>(reads);
  const [config, modules, catalog] = await Promise.all(reads);
  const role = roleOf(config, modules);
  if (role === null) {
    throw new ConfigurationError([`${modelId}: architecture "${config.architecture}" is not supported`]);
  }
  const heads = headsOf(uses);
  const files = [
    findGraphFile(folder, precision, catalog),
    readSelfChecks(folder, catalog.selfCheckFile, heads),
  ] as const;
  await gather<unknown>(files);
  const [file, selfChecks] = await Promise.all(files);
  checkFit(modelId, role, uses, config, modules, file);
  return {
    modelId,
    folder,
    graphPath: file.path,
    precision: file.precision,
    revision: file.sha256.slice(0, revisionDigits),
    sha256: file.sha256,
    maxTokens: config.maxTokens ?? 0,
    hiddenSize: config.hiddenSize,
    vocabularySize: config.vocabularySize,
    pooling: modules.pooling,
    isNormalized: modules.isNormalized,
    isMatryoshka: catalog.isMatryoshka,
    prompts: config.prompts,
    tokenRows: { documentSkipTokens: catalog.documentSkipTokens },
    scoreActivation: 'sigmoid',
    heads,
    selfChecks,
  };
}
