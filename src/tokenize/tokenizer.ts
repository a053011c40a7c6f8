/** Owns the contract of a tokenizer: text in, ids in the model's own format out. */

/** One text as ids, cut to the model's limit. */
export interface TokenizedText {
  /** @shape [tokens], special tokens included, no padding */
  readonly ids: Int32Array;
  /** Segment of each token; null means all zero. @shape [tokens] */
  readonly typeIds: Uint8Array | null;
  readonly isTruncated: boolean;
  /** Tokens before truncation, special tokens included. */
  readonly totalTokens: number;
  /** True where the rest of a very long text was not counted: `totalTokens` is a lower bound. */
  readonly isTotalMinimum: boolean;
}

/** Texts to ids for one model; stateless between calls. */
export interface TextTokenizer {
  /** How it was made, for the log and `info`: `tokenizers` (the reference library) or `transformers.js`. */
  readonly implementation: string;
  /** Each text with the model's special tokens, in input order. */
  tokenize(texts: readonly string[], signal?: AbortSignal): Promise<TokenizedText[]>;
  /**
   * The query joined with each passage by the model's pair template; only the passage is cut.
   * @throws invalidParams, field `query`, where the query leaves no room for a passage token
   */
  tokenizePairs(query: string, passages: readonly string[], signal?: AbortSignal): Promise<TokenizedText[]>;
  /** Ids of tokens whose text is exactly one of `texts`; those that the vocabulary lacks are left out. */
  idsOf(texts: readonly string[]): Set<number>;
}
