/** Owns what follows a model's encoder: the steps to its vector, its rows and its terms, from all that states them. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import type { GraphDescription } from '../kernels/onnx/read.ts';
import type { CatalogEntry } from './catalog.ts';
import { originalColbert } from './colbert-files.ts';
import type { StatedColbert } from './colbert-files.ts';
import type { FolderConfig } from './config-file.ts';
import { graphOutputs } from './head-source.ts';
import { readM3Layers } from './m3-files.ts';
import type { M3Layers } from './m3-files.ts';
import type { ModelManifest, YesNoRules } from './manifest.ts';
import type { ModuleChain } from './modules.ts';
import type { ModelRole } from './role.ts';
import { plainSplade } from './sparse-rules.ts';
import type { SparseRules } from './sparse-rules.ts';
import { poolingLabel, widthAfter } from './vector-steps.ts';
import type { VectorStep } from './vector-steps.ts';
import { readTokenIds } from './vocabulary.ts';
import { readTensor } from './weights/tensor-file.ts';
import type { TensorSource } from './weights/tensor-file.ts';

/** What follows a model's encoder. */
export type Pipeline = Pick<
  ModelManifest,
  | 'vectorSteps'
  | 'rowSteps'
  | 'dimension'
  | 'rowDimension'
  | 'pooling'
  | 'isNormalized'
  | 'sparse'
  | 'positiveLabel'
  | 'yesNo'
> & {
  /** Whether the multi-vector leaves out the first row, as models in the form of bge-m3 do. */
  readonly skipsFirstRow: boolean;
};

/** What states it. */
export interface PipelineSources {
  readonly folder: string;
  readonly role: ModelRole;
  readonly config: FolderConfig;
  readonly modules: ModuleChain;
  readonly catalog: CatalogEntry;
  readonly colbert: StatedColbert | null;
  readonly graph: GraphDescription;
}

/** Name of the pooling where the graph gives the vector itself. */
const graphPooling = 'graph';

/** The steps to the vector: those of the modules, else what the catalogue says of the pooling. */
function vectorStepsOf({ modules, catalog }: PipelineSources): readonly VectorStep[] {
  if (modules.makes === 'vector') return modules.steps;
  if (modules.makes !== null || catalog.pooling === null) return [];
  const pool: VectorStep = { kind: 'pool', modes: catalog.pooling };
  return catalog.isNormalized ? [pool, { kind: 'normalize' }] : [pool];
}

interface Rows {
  readonly steps: readonly VectorStep[];
  /** null where the steps say it. */
  readonly dimension: number | null;
}

/** The layer that the original ColBERT keeps among the encoder's weights; its graph may have it already. */
async function originalRows({ folder, config, colbert }: PipelineSources): Promise<Rows> {
  const weight: TensorSource = { path: join(folder, 'model.safetensors'), name: 'linear.weight' };
  const hasWeights = await stat(weight.path).then(
    () => true,
    () => false,
  );
  if (!hasWeights && colbert?.dimension !== undefined) return { steps: [], dimension: colbert.dimension };
  const { shape } = await readTensor(weight);
  const [outFeatures = 0] = shape;
  const { hiddenSize: inFeatures } = config;
  const linear = { kind: 'dense', inFeatures, outFeatures, weight, bias: null } as const;
  return { steps: [{ ...linear, activation: 'identity', residual: 'none' }], dimension: null };
}

/** How rows are made: by what stands before the pooling, or by a layer that a file of its own holds. */
async function rowsOf(sources: PipelineSources, m3: M3Layers): Promise<Rows> {
  const { config, modules } = sources;
  if (m3.rows !== null) return { steps: [m3.rows], dimension: null };
  if (modules.makes === null && config.architecture === originalColbert) return originalRows(sources);
  const pooling = modules.steps.findIndex(({ kind }) => kind === 'pool');
  return { steps: pooling < 0 ? modules.steps : modules.steps.slice(0, pooling), dimension: null };
}

/** Ids of the special tokens, which no lexical weight counts. */
async function specialIds({ folder, config }: PipelineSources): Promise<number[]> {
  const { bos, eos, unk, sep, pad, cls } = config.specialTokens;
  const tokens = [...new Set([bos, eos, unk, sep, pad, cls].filter((token) => token !== null))];
  return (await readTokenIds(folder, tokens)).filter((id) => id !== null);
}

/** How the model makes sparse vectors; null where it makes none. */
async function sparseOf(sources: PipelineSources, m3: M3Layers): Promise<SparseRules | null> {
  const { role, config, modules, graph } = sources;
  if (role === 'maskedLanguageModel') return { ...(modules.splade ?? plainSplade), maxTerms: config.maxTerms };
  const isInGraph = graph.outputs.some(({ name }) => name === graphOutputs.tokenWeights);
  if (role !== 'encoder' || (m3.lexical === null && !isInGraph)) return null;
  return { form: 'tokens', layer: isInGraph ? null : m3.lexical, unweightedIds: await specialIds(sources) };
}

/** How a generative model ranks; null for every other one. */
async function yesNoOf({ folder, role, catalog }: PipelineSources): Promise<YesNoRules | null> {
  if (role !== 'causalLanguageModel' || catalog.yesNo === null) return null;
  const { yes, no, ...texts } = catalog.yesNo;
  const [yesId = null, noId = null] = await readTokenIds(folder, [yes, no]);
  if (yesId === null || noId === null) {
    throw new ConfigurationError([`${folder}: its vocabulary lacks the tokens "${yes}" and "${no}"`]);
  }
  return { ...texts, yesId, noId };
}

function widthOf(folder: string, steps: readonly VectorStep[], width: number): number {
  const found = widthAfter(steps, width);
  if (typeof found === 'number') return found;
  throw new ConfigurationError([
    `${folder}: a layer takes vectors of ${String(found.expected)} numbers, what comes before it gives ` +
      String(found.found),
  ]);
}

/**
 * What follows the encoder.
 * @throws ConfigurationError where a step does not fit the one before it, or a file that it needs is not there
 */
export async function readPipeline(sources: PipelineSources): Promise<Pipeline> {
  const { folder, role, config, catalog, graph } = sources;
  const isEncoder = role === 'encoder';
  const m3 = isEncoder ? await readM3Layers(folder, config.hiddenSize) : { lexical: null, rows: null };
  const vectorSteps = isEncoder ? vectorStepsOf(sources) : [];
  const rows: Rows = isEncoder ? await rowsOf(sources, m3) : { steps: [], dimension: null };
  const hasM3Rows = m3.rows !== null || graph.outputs.some(({ name }) => name === graphOutputs.m3Rows);
  return {
    vectorSteps,
    rowSteps: rows.steps,
    dimension: isEncoder ? widthOf(folder, vectorSteps, config.hiddenSize) : 0,
    rowDimension: isEncoder ? (rows.dimension ?? widthOf(folder, rows.steps, config.hiddenSize)) : 0,
    pooling: isEncoder ? (poolingLabel(vectorSteps) ?? graphPooling) : null,
    isNormalized: vectorSteps.at(-1)?.kind === 'normalize',
    sparse: await sparseOf(sources, m3),
    positiveLabel: role === 'crossEncoder' && config.labels === 2 ? catalog.positiveLabel : null,
    yesNo: await yesNoOf(sources),
    skipsFirstRow: isEncoder && hasM3Rows,
  };
}
