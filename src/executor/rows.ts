/** Owns how the values of a head become what is sent back: only the bytes that are asked for. */
import type { Matrix, RunRow } from './protocol.ts';

/** The chosen rows of a matrix, in the given order; all of them where `keptRows` is null. @shape [rows, dimension] */
export function keepRows(rows: Matrix, keptRows: Int32Array | null): Float32Array {
  if (keptRows === null) return rows.values;
  const { values, dimension } = rows;
  const kept = new Float32Array(keptRows.length * dimension);
  for (const [position, row] of keptRows.entries()) {
    kept.set(values.subarray(row * dimension, (row + 1) * dimension), position * dimension);
  }
  return kept;
}

/** The terms whose weight is not zero, ascending; a weight that is not a number stays, so that it is noticed. */
export function packTerms(weights: Float32Array): RunRow {
  let count = 0;
  for (const weight of weights) if (weight !== 0) count++;
  const values = new Float32Array(count);
  const indices = new Int32Array(count);
  let next = 0;
  for (let term = 0; term < weights.length; term++) {
    const weight = weights[term] ?? 0;
    if (weight === 0) continue;
    values[next] = weight;
    indices[next] = term;
    next++;
  }
  return { values, indices };
}

/** Whether there may be more terms than the heaviest ones. @shape f32 [terms], weights descending */
export const mayLackTerms = (weights: Float32Array): boolean => weights.at(-1) !== 0;

/**
 * The terms among the heaviest ones whose weight is not zero, ascending; null where there may be more than those.
 * @shape f32 [terms], weights descending, and ids -> [terms]
 */
export function packTopTerms(weights: Float32Array, ids: Float32Array): RunRow | null {
  if (mayLackTerms(weights)) return null;
  const positions = [...weights.keys()].filter((position) => weights[position] !== 0);
  positions.sort((left, right) => (ids[left] ?? 0) - (ids[right] ?? 0));
  return {
    values: Float32Array.from(positions, (position) => weights[position] ?? 0),
    indices: Int32Array.from(positions, (position) => ids[position] ?? 0),
  };
}
