/** Owns what gives vectors, whether it is in this process or a server. */
import type { Vectors } from '../row.ts';

/** Methods by their names on the command line. */
export const methodNames = ['dense', 'sparse', 'multi'] as const;
/** One of `methodNames`. */
export type MethodName = (typeof methodNames)[number];

/** What is asked of every text. */
export interface VectorWish {
  readonly method: MethodName;
  readonly kind: 'document' | 'query';
  /** null: the first one. */
  readonly model: string | null;
  /** null: all that the model has. */
  readonly dimensions: number | null;
}

/** Vectors of texts, and the tokens they had. */
export interface Embedded {
  readonly vectors: Vectors;
  readonly tokens: number;
}

/** Gives vectors. */
export interface VectorSource {
  /** Of the model: vectors of another one are none to compare with. */
  readonly identity: string;
  /** Components of a vector or of a row; 0 for sparse ones. */
  readonly dimension: number;
  /** Calls of `embed` that it takes at a time without one of them waiting. */
  readonly parallelCalls: number;
  /** Rejects when nothing more can be done: it repeats what may succeed later itself. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Embedded>;
  /** Nothing is asked any more; a second call does nothing. */
  close(): Promise<void>;
}
