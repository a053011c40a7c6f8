/** Owns how a model makes sparse vectors. */
import type { TensorSource } from './weights/tensor-file.ts';

/** From a masked language model's logits to one weight per vocabulary term. */
export interface SpladeRules {
  readonly form: 'terms';
  readonly pooling: 'max' | 'sum';
  /** `log1pRelu` takes the logarithm twice. */
  readonly activation: 'relu' | 'log1pRelu';
  /** Weights of query terms for models whose queries are not run; null where queries run as documents do. */
  readonly queryTermWeights: TensorSource | null;
  /** Most tokens of a query that is looked up, which has no special ones; null where no file states a limit. */
  readonly maxQueryTokens: number | null;
  /** Most terms of a vector, of which the heaviest stay; null where all do. */
  readonly maxTerms: number | null;
}

/** One weight per token, which becomes that of the token's vocabulary entry. */
export interface TokenWeightRules {
  readonly form: 'tokens';
  /** The layer from a row to its token's weight; null where the graph has it. @shape [1, hidden] and [1] */
  readonly layer: { readonly weight: TensorSource; readonly bias: TensorSource } | null;
  /** Ids that never get a weight: the model's special tokens. */
  readonly unweightedIds: readonly number[];
}

/** How a model makes sparse vectors. */
export type SparseRules = SpladeRules | TokenWeightRules;

/** What SPLADE models do that say nothing else. */
export const plainSplade: SpladeRules = {
  form: 'terms',
  pooling: 'max',
  activation: 'relu',
  queryTermWeights: null,
  maxQueryTokens: null,
  maxTerms: null,
};
