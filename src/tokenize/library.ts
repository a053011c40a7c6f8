/** Owns the contract of a tokenizer library: texts to ids, with nothing cut and nothing padded. */

/** An encoding with the special tokens that the library itself adds. */
export interface TypedEncoding {
  /** @shape [tokens] */
  readonly ids: readonly number[];
  /** Segment of each token. @shape [tokens] */
  readonly typeIds: readonly number[];
}

/** What is needed of a library that reads a model's `tokenizer.json`. Texts must be well-formed Unicode. */
export interface TokenLibrary {
  /** Name for the log and `info`. */
  readonly implementation: string;
  /** Ids of each text without special tokens, in input order; never works on the thread that serves. */
  encodeBatch(texts: readonly string[]): Promise<readonly ArrayLike<number>[]>;
  /** The library's own assembly of one text, or of a pair: the answer that templates are derived from. */
  encodeWithSpecialTokens(text: string, pair: string | null): Promise<TypedEncoding>;
  /** How many ids there are, those of added tokens included. */
  readonly tokenCount: number;
  /** The id of a token whose text is exactly this, or null where the vocabulary lacks it. */
  idOf(tokenText: string): number | null;
}

/** Name of the file in a model's folder that defines its tokenizer. */
export const tokenizerFileName = 'tokenizer.json';
