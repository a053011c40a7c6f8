/** Owns what a model is: the facts read from its folder before anything is loaded. */
import type { AddedHead, RunPolicy } from '../executor/protocol.ts';
import { precisionLabel } from './convert/steps.ts';
import type { ConversionStep } from './convert/steps.ts';
import type { SparseRules } from './sparse-rules.ts';
import type { TokenRowRules } from './token-row-rules.ts';
import type { VectorStep } from './vector-steps.ts';

/** Precision of the weights in the graph file that is served. */
export type Precision = 'int8' | 'fp16' | 'fp32';

/** Prefix of a text by its `kind`, empty where the model has none. */
export interface Prompts {
  readonly query: string;
  readonly document: string;
  /** For a text without a kind. */
  readonly unspecified: string;
}

/** A self-check: ids that run at warm-up, and what the reference implementation gives for them. */
export interface SelfCheck {
  readonly head: AddedHead;
  readonly ids: readonly number[];
  /** dense: the vector; sparse: term ids and weights; rows: the rows, concatenated; logit: one number. */
  readonly expected: { readonly values: readonly number[]; readonly indices: readonly number[] | null };
  /** Least cosine between what came and what was expected, by precision. */
  readonly minCosine: Readonly<Record<Precision, number>>;
}

/** How a vector may be cut to `dimensions`. */
export interface MatryoshkaRules {
  /** Lengths that the model was trained for; empty where its files and the catalogue name none. */
  readonly dimensions: readonly number[];
  /** Whether the mean of the vector's values is taken away before the cut (a layer normalisation up to its scale). */
  readonly isCentered: boolean;
}

/** A generative model that ranks by the last token's logits of two words. */
export interface YesNoRules {
  readonly yesId: number;
  readonly noId: number;
  /** Text before `body`; neither it nor `suffix` is ever cut. */
  readonly prefix: string;
  /** Text with the places `{instruction}`, `{query}` and `{document}`; what is too long is cut at its end. */
  readonly body: string;
  readonly suffix: string;
  /** What stands at `{instruction}`. */
  readonly instruction: string;
}

/** What the graph asks for. */
export interface GraphInputs {
  /** Names of all inputs, in the graph's order; nothing else may be fed. */
  readonly names: readonly string[];
  /**
   * For a graph with `position_ids`; null: tokens count from 0. Else tokens of another id count from this one plus 1,
   * and this id, wherever it stands, has its own number as its position.
   */
  readonly positionPadId: number | null;
}

/** One model as it is served: immutable, complete before the first `info`. */
export interface ModelManifest {
  /** Repository id or folder name, unique in the process; key in every table and message. */
  readonly modelId: string;
  /** Name among the loaded models, where the id alone would not do: it is loaded on several devices. */
  readonly loadId?: string;
  readonly folder: string;
  /** Graph file in use, absolute. */
  readonly graphPath: string;
  readonly precision: Precision;
  /** What is done to the graph file to get that precision, in order; absent where it is served as it is. */
  readonly conversion?: readonly ConversionStep[];
  /** First 12 hex digits of the graph file's sha256: what is served, not what it claims to be. */
  readonly revision: string;
  readonly sha256: string;
  readonly maxTokens: number;
  /** Width of the encoder's rows, before any step. */
  readonly hiddenSize: number;
  readonly vocabularySize: number;
  /** Rows of the graph's table of tokens, which every id must be below; absent where the graph does not show it. */
  readonly tokenTableRows?: number;
  /** Length of the dense vector; 0 where the model makes none. */
  readonly dimension: number;
  /** Length of a multi-vector's rows; 0 where the model makes none. */
  readonly rowDimension: number;
  /** Name of the pooling for `identity`, such as `mean` or `cls+max`; null for models without a pooled vector. */
  readonly pooling: string | null;
  /** From the encoder's rows to the dense vector, in order; empty where the graph gives the vector itself. */
  readonly vectorSteps: readonly VectorStep[];
  /** From the encoder's rows to those of the multi-vector, before they are scaled to length 1. */
  readonly rowSteps: readonly VectorStep[];
  readonly isNormalized: boolean;
  /** Whether a prefix of the vector is itself an embedding, so that `dimensions` may cut it. */
  readonly isMatryoshka: boolean;
  readonly matryoshka: MatryoshkaRules;
  readonly prompts: Prompts;
  /** Every prompt by the name that callers know it by, those of the kinds among them; absent: there are none. */
  readonly namedPrompts?: Readonly<Record<string, string>>;
  /** False: the prompt's tokens are left out of the pooling, through the input `trivec_pooling_mask`. */
  readonly includesPrompt: boolean;
  readonly tokenRows: TokenRowRules;
  /** null for models without sparse vectors. */
  readonly sparse: SparseRules | null;
  /** What turns a cross-encoder's logit into a score. */
  readonly scoreActivation: 'sigmoid' | 'identity';
  /** Label whose logit, minus the other's, is the score of a classifier with two; null for one with one. */
  readonly positiveLabel: number | null;
  /** null for everything but a generative reranker. */
  readonly yesNo: YesNoRules | null;
  readonly inputs: GraphInputs;
  readonly runPolicy: RunPolicy;
  /** Heads that the prepared graph gets. */
  readonly heads: readonly AddedHead[];
  /** Name of the graph's own output with the encoder's rows, for models that embed; absent: the graph shows none. */
  readonly hiddenOutput?: string;
  readonly selfChecks: readonly SelfCheck[];
}

/** The name that executors know the model by. */
export const loadIdOf = ({ modelId, loadId }: Pick<ModelManifest, 'modelId' | 'loadId'>): string => loadId ?? modelId;

/** `model@revision:precision:pooling`, the identity that `info` and indexes carry; a conversion shows in the precision. */
export function identityOf(model: ModelManifest, pooling: string): string {
  const precision = precisionLabel(model.precision, model.conversion ?? []);
  return `${model.modelId}@${model.revision}:${precision}:${pooling}`;
}
