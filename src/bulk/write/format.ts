/** Owns what an output format is: what it can hold, its form while the run goes on, and how it is completed. */
import type { IntegerOutput } from '../../tensor/quantize.ts';
import type { Chunk, Vectors } from '../row.ts';

/** Ends of names of outputs. */
export const outputEnds = ['jsonl', 'npy', 'parquet', 'arrow'] as const;
/** One of `outputEnds`. */
export type OutputEnd = (typeof outputEnds)[number];

/** What an output is to hold. */
export interface OutputShape {
  readonly kind: Vectors['kind'];
  /** null: float32. */
  readonly output: IntegerOutput | null;
  /** Components of a vector, or of a row of a matrix; 0 for sparse ones. */
  readonly dimension: number;
  /** Whether rows have ids of their own. */
  readonly hasIds: boolean;
}

/** A chunk with its vectors. */
export interface EmbeddedChunk {
  readonly chunk: Chunk;
  readonly vectors: Vectors;
}

/** The end of a run. */
export interface Completion {
  /** File with the head and everything that was encoded. */
  readonly workPath: string;
  /** Free for the format's use; whatever it holds may be overwritten. */
  readonly builtPath: string;
  /** Rows in the output. */
  readonly rows: number;
}

/** A format of one shape. */
export interface OutputFormat {
  /** Begins the work file. */
  readonly head: Buffer;
  /** What a chunk adds to the work file. */
  encode(embedded: EmbeddedChunk): Buffer;
  /** Makes the whole output, durably, and gives its path; done again after an interruption it gives the same. */
  complete(completion: Completion): Promise<string>;
}

/** The numbers of a vector in its form. */
export const elementsOf = ({ dimension, output }: OutputShape): number =>
  output === 'binary' || output === 'ubinary' ? Math.ceil(dimension / 8) : dimension;
