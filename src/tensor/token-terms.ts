/** Owns sparse vectors that are made of single tokens instead of logits over the vocabulary. */

/** Terms by ascending id, each weight above zero. */
export interface TokenTerms {
  readonly indices: Int32Array;
  readonly values: Float32Array;
}

function sorted(weights: ReadonlyMap<number, number>): TokenTerms {
  const indices = Int32Array.from(weights.keys()).sort();
  return { indices, values: Float32Array.from(indices, (id) => weights.get(id) ?? 0) };
}

/**
 * The largest weight of each token id that is above zero, ids that never get a weight left out. A weight that is not
 * a number stays, so that it is noticed.
 * @shape [tokens], f32 [tokens] -> [terms]
 * @source FlagEmbedding, `BGEM3FlagModel`, lexical weights
 */
export function mergeTokenWeights(
  ids: Int32Array,
  weights: Float32Array,
  unweightedIds: ReadonlySet<number>,
): TokenTerms {
  const largest = new Map<number, number>();
  for (const [position, id] of ids.entries()) {
    const weight = weights[position] ?? 0;
    const isLarger = weight > (largest.get(id) ?? 0) || Number.isNaN(weight);
    if (isLarger && !unweightedIds.has(id)) largest.set(id, weight);
  }
  return sorted(largest);
}

/**
 * The weight of each distinct token id that has one: a query that is looked up instead of run.
 * @shape [tokens] without special tokens, f32 [vocabulary] -> [terms]
 * @source sentence-transformers, SparseStaticEmbedding
 */
export function lookUpTerms(ids: Int32Array, termWeights: Float32Array): TokenTerms {
  const weights = new Map<number, number>();
  for (const id of ids) {
    const weight = termWeights[id] ?? 0;
    if (weight !== 0) weights.set(id, weight);
  }
  return sorted(weights);
}
