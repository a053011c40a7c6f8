/** Owns the report of what a model's files say: what it can serve, and with which graph. */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { readFolderConfig } from './config-file.ts';
import { gather } from './gather.ts';
import { graphCandidates, readGraph } from './graph-file.ts';
import { fileErrorCode } from './json-file.ts';
import type { Pooling, Precision, Prompts } from './manifest.ts';
import { readModules } from './modules.ts';
import { readModelFolder } from './read-folder.ts';
import { roleNames, roleOf, useRules } from './role.ts';
import type { ModelUse } from './role.ts';

/** One graph file of a model. */
export interface GraphReport {
  /** Inside the model's folder. */
  readonly path: string;
  readonly precision: Precision;
  /** Of the graph and of the files that it names. */
  readonly sizeBytes: number;
  readonly externalFiles: readonly string[];
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
  readonly pooling: Pooling | null;
  readonly isNormalized: boolean;
  readonly hiddenSize: number;
  readonly vocabularySize: number;
  /** null where no file states a believable limit. */
  readonly maxTokens: number | null;
  readonly prompts: Prompts;
  readonly graphs: readonly GraphReport[];
  /** Graph that each kind of device would be given; null where there is none. */
  readonly chosenGraph: { readonly cpu: string | null; readonly gpu: string | null };
  /** What keeps it from serving what it is. */
  readonly problems: readonly string[];
}

/** Precisions that a GPU is given, the preferred one first; a CPU takes the first graph there is. */
const gpuPrecisions: readonly Precision[] = ['fp16', 'fp32', 'int8'];

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (fileErrorCode(error) === '') throw error;
    return null;
  }
}

/** Whether a model's folder has each graph file that can be served, the preferred ones first. */
export async function listGraphs(folder: string): Promise<{ path: string; precision: Precision; sizeBytes: number }[]> {
  const sized = await Promise.all(
    graphCandidates.map(async (candidate) => ({ ...candidate, sizeBytes: await sizeOf(join(folder, candidate.path)) })),
  );
  return sized.flatMap(({ sizeBytes, ...candidate }) => (sizeBytes === null ? [] : [{ ...candidate, sizeBytes }]));
}

/** The graph files, each read for the files that it names. */
async function reportGraphs(folder: string): Promise<GraphReport[]> {
  const graphs: GraphReport[] = [];
  // One at a time: each is held in memory while it is read.
  for (const graph of await listGraphs(folder)) {
    const { externalFiles } = await readGraph(join(folder, graph.path));
    const sizes = externalFiles.map(async (name) => (await sizeOf(join(folder, dirname(graph.path), name))) ?? 0);
    const externalBytes = (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
    graphs.push({ ...graph, sizeBytes: graph.sizeBytes + externalBytes, externalFiles });
  }
  return graphs;
}

/** The problems that serving a use would meet; nothing where it would be served. */
async function problemsOf(folder: string, use: ModelUse, modelId: string): Promise<readonly string[]> {
  try {
    await readModelFolder(folder, [use], 'auto', modelId);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}

/**
 * What the files of a model's folder say.
 * @throws ConfigurationError where they say too little to be reported
 */
export async function inspectModel(folder: string, modelId: string): Promise<ModelReport> {
  const reads = [readFolderConfig(folder), readModules(folder), reportGraphs(folder)] as const;
  await gather<unknown>(reads);
  const [config, modules, graphs] = await Promise.all(reads);
  const role = roleOf(config, modules);
  const uses = (Object.keys(useRules) as ModelUse[]).filter((use) => useRules[use].role === role);
  const outcomes: { readonly use: ModelUse; readonly problems: readonly string[] }[] = [];
  for (const use of uses) outcomes.push({ use, problems: await problemsOf(folder, use, modelId) });
  const unsupported = `${modelId}: architecture "${config.architecture}" is not supported`;
  const byGpu = gpuPrecisions.flatMap((precision) => graphs.filter((graph) => graph.precision === precision));
  return {
    modelId,
    folder,
    architecture: config.architecture,
    role: role === null ? null : roleNames[role],
    serves: outcomes.filter(({ problems }) => problems.length === 0).map(({ use }) => use),
    pooling: modules.pooling,
    isNormalized: modules.isNormalized,
    hiddenSize: config.hiddenSize,
    vocabularySize: config.vocabularySize,
    maxTokens: config.maxTokens,
    prompts: config.prompts,
    graphs,
    chosenGraph: { cpu: graphs[0]?.path ?? null, gpu: byGpu[0]?.path ?? null },
    problems: role === null ? [unsupported] : [...new Set(outcomes.flatMap(({ problems }) => problems))],
  };
}
