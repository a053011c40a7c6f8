/** Owns the numbers and words of the tiny models: the same for the same seed, on every machine. */

/** Sizes of every tiny model. */
export const tinySizes = { hidden: 16, inner: 32, positions: 64, segments: 2 } as const;

/** Special tokens first, so that their ids are 0 to 4. */
const specialTokens = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'];
const words =
  'a and the of in on is to who what how when river lake sea boat fish bird tree leaf apple pear bread milk tea ' +
  'red green blue white black small large old new fast slow north south east west wind rain snow sun moon star ' +
  'night day house door wall roof road bridge stone wood iron glass paper book letter word song dance run walk ' +
  'jump swim fly eat drink sleep wake open close give take find lose hello world cat dog horse cow';
const pieces = ['##s', '##ed', '##ing', '##er', '.', ',', '!', '?', '-', '(', ')'];

/** Token texts in id order. */
export const tinyVocabulary: readonly string[] = [...specialTokens, ...words.split(' '), ...pieces];

/** A matrix, row after row. */
export interface WeightMatrix {
  readonly rows: number;
  readonly columns: number;
  /** @shape f32 [rows x columns] */
  readonly values: Float32Array;
}

/** All weights of a tiny model; a dense encoder leaves out pooler and classifier. */
export interface TinyWeights {
  readonly words: WeightMatrix;
  readonly positions: WeightMatrix;
  readonly segments: WeightMatrix;
  readonly query: WeightMatrix;
  readonly key: WeightMatrix;
  readonly value: WeightMatrix;
  readonly attentionOut: WeightMatrix;
  readonly innerIn: WeightMatrix;
  readonly innerOut: WeightMatrix;
  readonly pooler: WeightMatrix;
  /** @shape f32 [hidden x labels] */
  readonly classifier: WeightMatrix;
}

/** Numbers from 0 to 1 that only the seed decides. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // A linear congruential step modulo 2^32; its low bits repeat soon, so only the high ones are used.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
}

/** The seed whose logits lie well apart, on both sides of zero, for ordinary pairs. */
const spreadSeed = 7;

/** Weights with `labels` logits. */
export function createTinyWeights(labels: number, seed = spreadSeed): TinyWeights {
  const random = createRandom(seed);
  const matrix = (rows: number, columns: number, scale: number): WeightMatrix => ({
    rows,
    columns,
    values: Float32Array.from({ length: rows * columns }, () => (random() * 2 - 1) * scale),
  });
  const { hidden, inner, positions, segments } = tinySizes;
  return {
    words: matrix(tinyVocabulary.length, hidden, 1),
    positions: matrix(positions, hidden, 0.3),
    segments: matrix(segments, hidden, 0.6),
    query: matrix(hidden, hidden, 0.5),
    key: matrix(hidden, hidden, 0.5),
    value: matrix(hidden, hidden, 0.5),
    attentionOut: matrix(hidden, hidden, 0.6),
    innerIn: matrix(hidden, inner, 0.4),
    innerOut: matrix(inner, hidden, 0.4),
    pooler: matrix(hidden, hidden, 0.5),
    classifier: matrix(hidden, labels, 1.5),
  };
}
