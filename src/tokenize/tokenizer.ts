/** Owns the contract of a tokenizer: text in, ids in the model's own format out. */
import type { TextForm } from './form.ts';
import type { KeptSide } from './window.ts';

/** A text, or ids of the model's own vocabulary without special tokens. */
export type TextOrIds = string | readonly number[];

/** One token of a text that is not cut. */
export interface TokenDetail {
  readonly id: number;
  /** The part of the text that it stands for; a special token's own name. */
  readonly text: string;
  /** Whether the model puts it around a text. */
  readonly isSpecial: boolean;
  /** Place in the text, in characters (code points); null for special tokens, and where the library does not tell. */
  readonly start: number | null;
  readonly end: number | null;
}

/** One text as ids, cut to the limit of its form. */
export interface TokenizedText {
  /** @shape [tokens], special tokens included, no padding */
  readonly ids: Int32Array;
  /** Segment of each token; null means all zero. @shape [tokens] */
  readonly typeIds: Uint8Array | null;
  readonly isTruncated: boolean;
  /** Tokens before truncation, special tokens and the marker included, filling not. */
  readonly totalTokens: number;
  /** True where the rest of a very long text was not counted: `totalTokens` is a lower bound. */
  readonly isTotalMinimum: boolean;
  /** Tokens at the start that belong to the prompt, where the form asks for them; absent: none. */
  readonly promptTokens?: number;
  /** From this position on tokens are filling that the others do not see; absent: no such tokens. */
  readonly attendedTokens?: number;
}

/** How a passage that is too long is cut. */
export interface PassageCut {
  /** The end that is kept; null: the one that the model keeps. */
  readonly keptSide: KeptSide | null;
  /** Most tokens of the passage itself, at least 1; null: what its query leaves of the model's limit. */
  readonly maxTokens: number | null;
}

/** What is written around a query and a passage. */
export interface FilledTemplate {
  /** Text before `body`, never cut. */
  readonly prefix: string;
  /** Text with the places `{instruction}`, `{query}` and `{document}`; what is too long is cut at its end. */
  readonly body: string;
  /** Text behind `body`, never cut. */
  readonly suffix: string;
  /** What stands at `{instruction}`. */
  readonly instruction: string;
}

/** Texts to ids for one model; stateless between calls. */
export interface TextTokenizer {
  /** How it was made, for the log and `info`: `tokenizers` (the reference library) or `transformers.js`. */
  readonly implementation: string;
  /** Ids of ordinary tokens are below; what is marked special, and not part of ordinary text, may lie beyond. */
  readonly ordinaryIdEnd: number;
  /** Ids of the vocabulary are below, those of special tokens included. */
  readonly idEnd: number;
  /** Special tokens around a text. @unit tokens */
  readonly specialTokens: number;
  /**
   * Each text in its form (without one: with the model's special tokens, up to its limit), in input order. What is ids
   * already gets the form's prompt as tokens before it; the ids must be below `idEnd`.
   */
  tokenize(texts: readonly TextOrIds[], signal?: AbortSignal, form?: TextForm): Promise<TokenizedText[]>;
  /**
   * The query joined with each passage by the given template, else by the model's for pairs; only the passage is cut.
   * @throws invalidParams, field `query`, where the query leaves no room for a passage token
   */
  tokenizePairs(
    query: string,
    passages: readonly string[],
    signal?: AbortSignal,
    template?: FilledTemplate,
    cut?: PassageCut,
  ): Promise<TokenizedText[]>;
  /** Ids of tokens whose text is exactly one of `texts`; those that the vocabulary lacks are left out. */
  idsOf(texts: readonly string[]): Set<number>;
  /** All tokens of one text, nothing cut, between the model's special tokens where asked for. */
  detailsOf(text: string, hasSpecialTokens: boolean): Promise<TokenDetail[]>;
  /** The text of each list of ids, in order; ids that are no tokens are left out. */
  decode(ids: readonly (readonly number[])[], skipsSpecialTokens: boolean): Promise<string[]>;
}
