/** Owns what is wrong with a model of a role, apart from its graph's form. */
import type { GraphDescription } from '../kernels/onnx/read.ts';
import type { CatalogEntry } from './catalog.ts';
import type { FolderConfig } from './config-file.ts';
import { graphOutputs } from './head-source.ts';
import type { Pipeline } from './pipeline.ts';
import type { ModelRole, ModelUse } from './role.ts';

/** What a model is judged by. */
export interface FitFacts {
  readonly modelId: string;
  readonly role: ModelRole;
  readonly uses: readonly ModelUse[];
  readonly config: FolderConfig;
  readonly catalog: CatalogEntry;
  readonly pipeline: Omit<Pipeline, 'skipsFirstRow'>;
}

/** What is wrong with a classifier's labels; null where one logit is the score. */
export function labelProblem({ modelId, role, config, catalog }: FitFacts): string | null {
  if (role !== 'crossEncoder' || config.labels === 1) return null;
  const has = `rerank-model: ${modelId} has ${String(config.labels)} labels`;
  if (config.labels !== 2) return `${has}, a reranker has one`;
  return catalog.positiveLabel === null ? `${has}, and which of them means "relevant" is not known` : null;
}

/** Outputs that are the vector itself. */
const vectorNames: readonly string[] = ['sentence_embedding', graphOutputs.vector];

/** Whether nothing says how rows become a vector, and the graph has none of its own. */
export function lacksPooling({ uses, pipeline }: FitFacts, graph: GraphDescription): boolean {
  const hasVector = graph.outputs.some(({ name }) => vectorNames.includes(name));
  return uses.includes('embed') && pipeline.vectorSteps.length === 0 && !hasVector;
}

/** What keeps a model of this role from its uses, apart from its graph's form; nothing where it fits. */
export function configProblems(facts: FitFacts, graph: GraphDescription): string[] {
  const { modelId, config, catalog } = facts;
  const labels = labelProblem(facts);
  return [
    ...(config.maxTokens === null && catalog.maxTokens === null
      ? [`${modelId}: no file states a believable limit of tokens`]
      : []),
    ...(lacksPooling(facts, graph)
      ? [`${modelId}: modules.json names no Pooling module, so how rows become a vector is not known`]
      : []),
    ...(labels === null ? [] : [labels]),
  ];
}
