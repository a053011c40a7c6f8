/** Owns the weight of each token and of each vocabulary entry in plain TypeScript. */

/**
 * relu(row * weight + bias) for each token row.
 * @shape f32 [sequence, hidden] -> f32 [sequence]
 */
export function tokenWeightsReference(
  rows: readonly (readonly number[])[],
  weight: readonly number[],
  bias: number,
): number[] {
  return rows.map((row) =>
    Math.max(
      0,
      row.reduce((total, value, index) => total + value * (weight[index] ?? 0), bias),
    ),
  );
}

/** The largest weight of each token id that is above zero, special tokens left out, by ascending id. */
export function mergedTokenWeightsReference(
  ids: readonly number[],
  weights: readonly number[],
  unweightedIds: readonly number[],
): { readonly indices: number[]; readonly values: number[] } {
  const largest = new Map<number, number>();
  ids.forEach((id, position) => {
    const weight = weights[position] ?? 0;
    if (!unweightedIds.includes(id) && weight > (largest.get(id) ?? 0)) largest.set(id, weight);
  });
  const terms = [...largest].sort(([left], [right]) => left - right);
  return { indices: terms.map(([id]) => id), values: terms.map(([, weight]) => weight) };
}
