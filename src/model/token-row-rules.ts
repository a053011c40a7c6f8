/** Owns which rows a multi-vector has: markers, lengths, expansion of queries, tokens that documents leave out. */

/** What rows a multi-vector of this model has. */
export interface TokenRowRules {
  /** Texts of tokens whose rows are left out of documents. */
  readonly documentSkipTokens: readonly string[];
  /** Texts of tokens whose rows are left out of queries. */
  readonly querySkipTokens: readonly string[];
  /** Token put behind the first special token of a query; null where the model has none. */
  readonly queryMarker: string | null;
  /** Token put behind the first special token of a document; null where the model has none. */
  readonly documentMarker: string | null;
  /** Most tokens of a query, marker and special tokens included; null where the model's limit holds. */
  readonly maxQueryTokens: number | null;
  /** Most tokens of a document, marker and special tokens included; null where the model's limit holds. */
  readonly maxDocumentTokens: number | null;
  /** Length up to which queries are filled; null: up to `maxQueryTokens`. */
  readonly minQueryTokens: number | null;
  /** Token that fills queries, each with a row of its own; null where they are not filled. */
  readonly expansionToken: string | null;
  /** Whether the other tokens see the filling; false: `attention_mask` is 0 there, and its rows count all the same. */
  readonly isExpansionAttended: boolean;
  /** Whether the row of the first token counts. */
  readonly keepsFirstRow: boolean;
  /** Whether MaxSim is divided by the number of the query's rows. */
  readonly isMaxSimAveraged: boolean;
}

/** A single ASCII punctuation character each, in the order of Python's `string.punctuation`. */
export const punctuation: readonly string[] = Array.from('!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~');

/** One row for each token. */
export const plainTokenRows: TokenRowRules = {
  documentSkipTokens: [],
  querySkipTokens: [],
  queryMarker: null,
  documentMarker: null,
  maxQueryTokens: null,
  maxDocumentTokens: null,
  minQueryTokens: null,
  expansionToken: null,
  isExpansionAttended: false,
  keepsFirstRow: true,
  isMaxSimAveraged: false,
};

/** What a source states about the rows; undefined where it says nothing, null where it says that there is none. */
export interface StatedTokenRows {
  readonly documentSkipTokens?: readonly string[] | undefined;
  readonly querySkipTokens?: readonly string[] | undefined;
  readonly queryMarker?: string | undefined;
  readonly documentMarker?: string | undefined;
  readonly maxQueryTokens?: number | null | undefined;
  readonly maxDocumentTokens?: number | null | undefined;
  readonly minQueryTokens?: number | null | undefined;
  readonly expandsQueries?: boolean | undefined;
  /** Token that fills queries; without it, by what the tokenizer has. */
  readonly expansionToken?: string | undefined;
  readonly isExpansionAttended?: boolean | undefined;
  readonly isMaxSimAveraged?: boolean | undefined;
}

/** What a model that was trained for late interaction does where its files are silent. @source PyLate, `ColBERT` */
const colbertDefaults = {
  documentSkipTokens: punctuation,
  querySkipTokens: [],
  queryMarker: '[Q] ',
  documentMarker: '[D] ',
  maxQueryTokens: 32,
  maxDocumentTokens: 180,
  minQueryTokens: null,
  expandsQueries: true,
  isExpansionAttended: false,
  isMaxSimAveraged: false,
} as const satisfies Required<Omit<StatedTokenRows, 'expansionToken'>>;

/** Members that are stated. */
const stated = (rows: StatedTokenRows | null): StatedTokenRows =>
  Object.fromEntries(Object.entries(rows ?? {}).filter(([, value]) => value !== undefined));

/** What fills queries, by what the tokenizer has. */
export interface FillTokens {
  readonly mask: string | null;
  readonly eos: string | null;
}

/**
 * The rules of a model, from what its files state and what the catalogue states, which goes first.
 * A model of which nothing is stated has a row for each token.
 */
export function tokenRowRules(
  file: StatedTokenRows | null,
  catalog: StatedTokenRows | null,
  fill: FillTokens,
): TokenRowRules {
  const isColbert = file !== null || catalog?.queryMarker !== undefined;
  if (!isColbert) {
    return { ...plainTokenRows, documentSkipTokens: catalog?.documentSkipTokens ?? [] };
  }
  const rules = { ...colbertDefaults, ...stated(file), ...stated(catalog) };
  const marker = (text: string): string | null => (text === '' ? null : text);
  return {
    documentSkipTokens: rules.documentSkipTokens,
    querySkipTokens: rules.querySkipTokens,
    queryMarker: marker(rules.queryMarker),
    documentMarker: marker(rules.documentMarker),
    maxQueryTokens: rules.maxQueryTokens,
    maxDocumentTokens: rules.maxDocumentTokens,
    minQueryTokens: rules.minQueryTokens,
    expansionToken: rules.expandsQueries ? (rules.expansionToken ?? fill.mask ?? fill.eos) : null,
    isExpansionAttended: rules.expandsQueries && rules.isExpansionAttended,
    keepsFirstRow: true,
    isMaxSimAveraged: rules.isMaxSimAveraged,
  };
}
