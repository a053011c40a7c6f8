/** Owns the report of what a model's files say: what it can serve, and with which graph. */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import type { RunPolicy } from '../executor/protocol.ts';
import { readCatalogEntry, repositoryOf } from './catalog.ts';
import { readFolderConfig } from './config-file.ts';
import { describeConverted } from './convert/describe.ts';
import { planPrecision } from './convert/plan.ts';
import { precisionLabel } from './convert/steps.ts';
import type { ConversionStep } from './convert/steps.ts';
import { gather } from './gather.ts';
import { findVariants } from './graph-file.ts';
import { thisCpu } from './graph-variant.ts';
import type { DeviceAbilities, GraphVariant } from './graph-variant.ts';
import { fileErrorCode } from './json-file.ts';
import type { MatryoshkaRules, ModelManifest, Prompts } from './manifest.ts';
import { readModules } from './modules.ts';
import { readModelFolder } from './read-folder.ts';
import type { FolderOptions } from './read-folder.ts';
import { roleNames, roleOf, useRules } from './role.ts';
import type { ModelRole, ModelUse } from './role.ts';
import type { TokenRowRules } from './token-row-rules.ts';
import type { VectorStep } from './vector-steps.ts';

/** One graph file of a model. */
export interface GraphReport extends GraphVariant {
  /** Of the graph and of the files that it names. */
  readonly sizeBytes: number;
  readonly externalFiles: readonly string[];
}

/** What a device would be given, or why it cannot be given anything. */
export type ChosenGraph =
  | {
      readonly path: string;
      /** As `identity` would name it. */
      readonly precision: string;
      readonly conversion: readonly ConversionStep[];
    }
  | { readonly problem: string };

/** What serving a model would mean. */
export interface ServingReport {
  /** Name of the pooling; null for models without a pooled vector. */
  readonly pooling: string | null;
  /** From the encoder's rows to the vector. */
  readonly vectorSteps: readonly VectorStep[];
  /** From the encoder's rows to those of the multi-vector. */
  readonly rowSteps: readonly VectorStep[];
  readonly isNormalized: boolean;
  readonly dimension: number;
  readonly rowDimension: number;
  readonly matryoshka: MatryoshkaRules;
  readonly tokenRows: TokenRowRules;
  readonly maxTokens: number;
  readonly prompts: Prompts;
  readonly runPolicy: RunPolicy;
}

/** What a model's files say. */
export interface ModelReport {
  readonly modelId: string;
  readonly folder: string;
  readonly architecture: string;
  /** What it is; null where it cannot be served at all. */
  readonly role: string | null;
  /** Capabilities that it can serve as it is. */
  readonly serves: readonly ModelUse[];
  readonly hiddenSize: number;
  readonly vocabularySize: number;
  /** null where it can serve nothing. */
  readonly serving: ServingReport | null;
  readonly graphs: readonly GraphReport[];
  /** Graph that each kind of device would be given. */
  readonly chosenGraph: { readonly cpu: ChosenGraph; readonly gpu: ChosenGraph };
  /** What keeps it from serving what it is. */
  readonly problems: readonly string[];
}

/** A GPU as most are. */
const usualGpu: DeviceAbilities = { ...thisCpu, kind: 'cuda', hasFloat16: true };

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (fileErrorCode(error) === '') throw error;
    return 0;
  }
}

/** Each graph file, read for the files that it names. */
async function reportGraphs(folder: string, variants: readonly GraphVariant[]): Promise<GraphReport[]> {
  const graphs: GraphReport[] = [];
  // One at a time: the structure of each is in memory while it is read.
  for (const variant of variants) {
    const path = join(folder, variant.path);
    const { externalFiles } = describeConverted(path, []);
    const sizes = [path, ...externalFiles.map((name) => join(dirname(path), name))].map(sizeOf);
    const sizeBytes = (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
    graphs.push({ ...variant, sizeBytes, externalFiles });
  }
  return graphs;
}

function choose(variants: readonly GraphVariant[], device: DeviceAbilities): ChosenGraph {
  const plan = planPrecision(variants, 'auto', device);
  if ('problem' in plan) return plan;
  const { variant, steps, precision } = plan;
  return { path: variant.path, precision: precisionLabel(precision, steps), conversion: steps };
}

interface Outcome {
  readonly use: ModelUse;
  readonly manifest: ModelManifest | null;
  readonly problems: readonly string[];
}

async function tryUse(folder: string, use: ModelUse, options: FolderOptions): Promise<Outcome> {
  try {
    return { use, manifest: await readModelFolder(folder, [use], 'auto', options), problems: [] };
  } catch (error) {
    if (error instanceof ConfigurationError) return { use, manifest: null, problems: error.problems };
    throw error;
  }
}

/** Tries the uses that a role may have; those that only some models of it have are no problem where they fail. */
async function tryUses(folder: string, role: ModelRole, options: FolderOptions): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const use of Object.keys(useRules) as ModelUse[]) {
    const { role: usual, fits } = useRules[use];
    const mayFit = fits?.(role, { hasTokenWeights: true, answersYesNo: true }) === true;
    if (usual === role || mayFit) outcomes.push(await tryUse(folder, use, options));
  }
  const isUsual = outcomes.some(({ use }) => useRules[use].role === role);
  return outcomes.filter(({ use, manifest }) => manifest !== null || !isUsual || useRules[use].role === role);
}

function servingOf(manifest: ModelManifest): ServingReport {
  const { pooling, vectorSteps, rowSteps, isNormalized, dimension, rowDimension } = manifest;
  const { matryoshka, tokenRows, maxTokens, prompts, runPolicy } = manifest;
  const vectors = { pooling, vectorSteps, rowSteps, isNormalized, dimension, rowDimension };
  return { ...vectors, matryoshka, tokenRows, maxTokens, prompts, runPolicy };
}

/**
 * What the files of a model's folder say.
 * @throws ConfigurationError where they say too little to be reported
 */
export async function inspectModel(folder: string, modelId: string, options: FolderOptions = {}): Promise<ModelReport> {
  const { graphFolder = folder, repository = repositoryOf(folder) } = options;
  const { graphPath } = await readCatalogEntry(folder, repository);
  const variants = await findVariants(graphFolder, graphPath, thisCpu.arch);
  const reads = [readFolderConfig(folder), readModules(folder), reportGraphs(graphFolder, variants)] as const;
  await gather<unknown>(reads);
  const [config, modules, graphs] = await Promise.all(reads);
  const role = roleOf(config, modules);
  const outcomes = role === null ? [] : await tryUses(folder, role, { ...options, modelId });
  const first = outcomes.find(({ manifest }) => manifest !== null)?.manifest ?? null;
  const unsupported = `${modelId}: architecture "${config.architecture}" is not supported`;
  return {
    modelId,
    folder,
    architecture: config.architecture,
    role: role === null ? null : roleNames[role],
    serves: outcomes.filter(({ manifest }) => manifest !== null).map(({ use }) => use),
    hiddenSize: config.hiddenSize,
    vocabularySize: config.vocabularySize,
    serving: first === null ? null : servingOf(first),
    graphs,
    chosenGraph: { cpu: choose(variants, thisCpu), gpu: choose(variants, usualGpu) },
    problems: role === null ? [unsupported] : [...new Set(outcomes.flatMap(({ problems }) => problems))],
  };
}
