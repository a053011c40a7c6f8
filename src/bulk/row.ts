/** Owns what a row of an input is, wherever it came from. */

/** What names a row for its owner. */
export type RowId = string | number | bigint;

/** A place from which a file can be read on. */
export interface FilePosition {
  /** Bytes of the file, or rows of a Parquet file, that lie before it. */
  readonly offset: number;
  /** Lines that lie before it, or rows. */
  readonly line: number;
}

/** A place in all files of an input. */
export interface InputPosition extends FilePosition {
  /** Which of the files. */
  readonly file: number;
}

/** A row as it was read: with its text, or with the reason why it has none. */
export interface ReadRow {
  /** null: see `reason`. */
  readonly text: string | null;
  readonly id: RowId | null;
  /** What is wrong with the row, without any of its text; null where nothing is. */
  readonly reason: string | null;
  /** Line, or row of a Parquet file, counted from 1. */
  readonly line: number;
  /** Place behind the row; null where reading cannot begin there. */
  readonly next: FilePosition | null;
}

/** A row that is embedded. */
export interface TextRow {
  /** Number of the row in the whole input, counted from 0, bad rows included. */
  readonly index: number;
  readonly id: RowId | null;
  readonly text: string;
  readonly file: string;
  readonly line: number;
}

/** A row that is left out. */
export interface BadRow {
  readonly index: number;
  readonly file: string;
  readonly line: number;
  readonly reason: string;
}

/** What is wrong with a row, in words. */
export const describeBadRow = ({ file, line, reason }: Omit<BadRow, 'index'>): string =>
  `${file}:${String(line)}: ${reason}`;

/** Rows that are embedded and recorded together. */
export interface Chunk {
  /** Counted from 0 through the whole run. */
  readonly number: number;
  readonly rows: readonly TextRow[];
  readonly bad: readonly BadRow[];
  /** Rows of the input before it. */
  readonly firstIndex: number;
  /** Place behind its last row. */
  readonly after: InputPosition;
  /** Check sum of the texts and ids, and of the rows that are left out. */
  readonly digest: number;
}

/** Vectors of the texts of a chunk, in their order. */
export type Vectors =
  | { readonly kind: 'dense'; readonly vectors: readonly Float32Array[] }
  | { readonly kind: 'sparse'; readonly sparse: readonly SparseRow[] }
  | { readonly kind: 'multi'; readonly matrices: readonly MatrixRow[] };

/** Terms of a sparse vector, ascending. */
export interface SparseRow {
  readonly indices: Int32Array;
  readonly values: Float32Array;
}

/** Vectors of the tokens of a text, one behind the other. */
export interface MatrixRow {
  readonly values: Float32Array;
  readonly dimension: number;
}

/** A problem of the input or the output that only the user can solve; nothing of what was done is lost. */
export class BulkFailure extends Error {
  override readonly name = 'BulkFailure';
}
