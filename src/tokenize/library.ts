/** Owns the contract of a tokenizer library: texts to ids, with nothing cut and nothing padded. */

/** An encoding with the special tokens that the library itself adds. */
export interface TypedEncoding {
  /** @shape [tokens] */
  readonly ids: readonly number[];
  /** Segment of each token. @shape [tokens] */
  readonly typeIds: readonly number[];
}

/** A text's own tokens, nothing cut. */
export interface PlacedEncoding {
  /** @shape [tokens] */
  readonly ids: readonly number[];
  /** Start and end of each token in the text; null where the library does not tell. @unit characters (code points) */
  readonly places: readonly (readonly number[])[] | null;
}

/** What is needed of a library that reads a model's `tokenizer.json`. Texts must be well-formed Unicode. */
export interface TokenLibrary {
  /** Name for the log and `info`. */
  readonly implementation: string;
  /** Ids of each text without special tokens, in input order; never works on the thread that serves. */
  encodeBatch(texts: readonly string[]): Promise<readonly ArrayLike<number>[]>;
  /** The library's own assembly of one text, or of a pair: the answer that templates are derived from. */
  encodeWithSpecialTokens(text: string, pair: string | null): Promise<TypedEncoding>;
  /** One text without special tokens, with the place of each token. */
  encodeWithPlaces(text: string): Promise<PlacedEncoding>;
  /** The text of each list of ids; those that are no tokens are left out. */
  decodeBatch(ids: readonly (readonly number[])[], skipsSpecialTokens: boolean): Promise<string[]>;
  /** How many ids there are, those of added tokens included. */
  readonly tokenCount: number;
  /** The id of a token whose text is exactly this, or null where the vocabulary lacks it. */
  idOf(tokenText: string): number | null;
  /** The text of the token with this id, as the vocabulary spells it, or null where there is none. */
  tokenOf(id: number): string | null;
}

/** Name of the file in a model's folder that defines its tokenizer. */
export const tokenizerFileName = 'tokenizer.json';
