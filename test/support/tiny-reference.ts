/** Owns the forward pass of the tiny models in plain TypeScript, one text at a time and without padding. */
import type { TinyWeights, WeightMatrix } from './tiny-weights.ts';

type Row = readonly number[];

const rowOf = (matrix: WeightMatrix, index: number): number[] =>
  Array.from(matrix.values.subarray(index * matrix.columns, (index + 1) * matrix.columns));
const add = (left: Row, right: Row): number[] => left.map((value, index) => value + (right[index] ?? 0));
const dot = (left: Row, right: Row): number =>
  left.reduce((total, value, index) => total + value * (right[index] ?? 0), 0);

function multiply(row: Row, matrix: WeightMatrix): number[] {
  return Array.from({ length: matrix.columns }, (_, column) =>
    row.reduce((total, value, index) => total + value * (matrix.values[index * matrix.columns + column] ?? 0), 0),
  );
}

function normalizeLayer(row: Row): number[] {
  const mean = row.reduce((total, value) => total + value, 0) / row.length;
  const variance = row.reduce((total, value) => total + (value - mean) ** 2, 0) / row.length;
  return row.map((value) => (value - mean) / Math.sqrt(variance + 1e-5));
}

function softmax(row: Row): number[] {
  const largest = Math.max(...row);
  const powers = row.map((value) => Math.exp(value - largest));
  const sum = powers.reduce((total, value) => total + value, 0);
  return powers.map((value) => value / sum);
}

function attend(rows: readonly Row[], weights: TinyWeights): number[][] {
  const keys = rows.map((row) => multiply(row, weights.key));
  const values = rows.map((row) => multiply(row, weights.value));
  return rows.map((row) => {
    const query = multiply(row, weights.query);
    const shares = softmax(keys.map((key) => dot(query, key) / Math.sqrt(query.length)));
    const mixed = values.reduce<number[]>(
      (total, value, index) =>
        add(
          total,
          value.map((one) => one * (shares[index] ?? 0)),
        ),
      row.map(() => 0),
    );
    return multiply(mixed, weights.attentionOut);
  });
}

/**
 * The last hidden state of one text; `typeIds` null means segment 0 throughout.
 * @shape [tokens] -> [tokens, hidden]
 */
export function tinyHiddenState(weights: TinyWeights, ids: Row, typeIds: Row | null = null): number[][] {
  const embedded = ids.map((id, position) =>
    normalizeLayer(
      add(
        add(rowOf(weights.words, id), rowOf(weights.positions, position)),
        rowOf(weights.segments, typeIds?.[position] ?? 0),
      ),
    ),
  );
  const attended = attend(embedded, weights).map((row, index) => normalizeLayer(add(row, embedded[index] ?? [])));
  return attended.map((row) => {
    const inner = multiply(row, weights.innerIn).map((value) => Math.max(0, value));
    return normalizeLayer(add(multiply(inner, weights.innerOut), row));
  });
}

/**
 * The logits of one text.
 * @shape [tokens] -> [labels]
 */
export function tinyLogits(weights: TinyWeights, ids: Row, typeIds: Row | null = null): number[] {
  const first = tinyHiddenState(weights, ids, typeIds)[0] ?? [];
  return multiply(multiply(first, weights.pooler).map(Math.tanh), weights.classifier);
}

/**
 * The mean of the last hidden state, scaled to length 1.
 * @shape [tokens] -> [hidden]
 */
export function tinyDense(weights: TinyWeights, ids: Row): number[] {
  const rows = tinyHiddenState(weights, ids);
  const sums = rows.reduce<number[]>(
    (total, row) => add(total, row),
    Array.from(rows[0] ?? [], () => 0),
  );
  const norm = Math.sqrt(dot(sums, sums));
  return sums.map((value) => value / norm);
}
