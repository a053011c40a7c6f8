/** Owns what a model is: the facts read from its folder before anything is loaded. */
import type { Head } from '../executor/protocol.ts';

/** Precision of the weights in the graph file that is served. */
export type Precision = 'int8' | 'fp16' | 'fp32';

/** How token rows become one vector. */
export type Pooling = 'mean' | 'cls' | 'lastToken';

/** What rows a multi-vector of this model has. */
export interface TokenRowRules {
  /** Texts of tokens whose rows are left out of documents (never of queries). */
  readonly documentSkipTokens: readonly string[];
}

/** Prefix of a text by its `kind`, empty where the model has none. */
export interface Prompts {
  readonly query: string;
  readonly document: string;
  /** For a text without a kind. */
  readonly unspecified: string;
}

/** A self-check: ids that run at warm-up, and what the reference implementation gives for them. */
export interface SelfCheck {
  readonly head: Head;
  readonly ids: readonly number[];
  /** dense: the vector; sparse: term ids and weights; rows: the rows, concatenated; logit: one number. */
  readonly expected: { readonly values: readonly number[]; readonly indices: readonly number[] | null };
  /** Least cosine between what came and what was expected, by precision. */
  readonly minCosine: Readonly<Record<Precision, number>>;
}

/** One model as it is served: immutable, complete before the first `info`. */
export interface ModelManifest {
  /** Folder name, unique in the process; key in every table and message. */
  readonly modelId: string;
  readonly folder: string;
  /** Graph file in use, absolute. */
  readonly graphPath: string;
  readonly precision: Precision;
  /** First 12 hex digits of the graph file's sha256: what is served, not what it claims to be. */
  readonly revision: string;
  readonly sha256: string;
  readonly maxTokens: number;
  readonly hiddenSize: number;
  readonly vocabularySize: number;
  /** null for models without a pooled vector (masked-LM, cross-encoder). */
  readonly pooling: Pooling | null;
  readonly isNormalized: boolean;
  /** Whether a prefix of the vector is itself an embedding, so that `dimensions` may cut it. */
  readonly isMatryoshka: boolean;
  readonly prompts: Prompts;
  readonly tokenRows: TokenRowRules;
  /** What turns a cross-encoder's logit into a score. */
  readonly scoreActivation: 'sigmoid' | 'identity';
  /** Heads that the prepared graph gets. */
  readonly heads: readonly Head[];
  readonly selfChecks: readonly SelfCheck[];
}

/** `model@revision:precision:pooling`, the identity that `info` and indexes carry. */
export function identityOf(model: ModelManifest, pooling: string): string {
  return `${model.modelId}@${model.revision}:${model.precision}:${pooling}`;
}
