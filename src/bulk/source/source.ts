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
  /**
   * Rejects when nothing more can be done: it repeats what may succeed later itself.
   * @throws RefusedText where it is one text that cannot be embedded; BulkFailure; the signal's reason
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Embedded>;
  /** Nothing is asked any more; a second call does nothing. */
  close(): Promise<void>;
}

/** One text cannot be embedded, though all others may. */
export class RefusedText extends Error {
  override readonly name = 'RefusedText';
  /** Its place in the list of the call. */
  readonly place: number;

  constructor(place: number, message: string) {
    super(message);
    this.place = place;
  }
}

const namedPlace = /^(?:inputs|texts)\[(\d+)\](?:: )?/u;

/** An error that names one text of a list, which begins at a place of a longer one; null where it names none. */
export function refusedText(error: Error, field: string | undefined, start: number): RefusedText | null {
  const place = namedPlace.exec(field ?? '')?.[1];
  return place === undefined ? null : new RefusedText(start + Number(place), error.message.replace(namedPlace, ''));
}
