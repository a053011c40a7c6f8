/** Owns how long runs take: a formula of their size, and its fit to runs that were timed. */
import type { Timing } from '../executor/protocol.ts';

/**
 * What a run of B texts of L tokens each takes: `fixedMs + tokenMs * B * L + squaredTokenMs * B * L * L`. The last is
 * attention, where every token of a text looks at every other.
 */
export interface RunCost {
  /** @unit ms */
  readonly fixedMs: number;
  /** @unit ms */
  readonly tokenMs: number;
  /** @unit ms */
  readonly squaredTokenMs: number;
}

/** How many texts of which length go through a graph together. */
type RunSize = Pick<Timing, 'texts' | 'tokens'>;

/** The time of a run by the formula. @unit ms */
export function runMs({ fixedMs, tokenMs, squaredTokenMs }: RunCost, { texts, tokens }: RunSize): number {
  return fixedMs + texts * tokens * (tokenMs + squaredTokenMs * tokens);
}

/** What each of the three coefficients is multiplied with. */
const termsOf = ({ texts, tokens }: RunSize): number[] => [1, texts * tokens, texts * tokens * tokens];

/**
 * Coefficients that may be other than zero, the ones to prefer where several fit equally well first: a single timing
 * says most as a time for each token, two say what a run and a token take.
 */
const activeSets: readonly (readonly number[])[] = [[1], [0, 1], [0], [0, 1, 2], [1, 2], [0, 2], [2]];

/** Sums of squared relative errors that differ by less are equally good: that is what numbers are rounded by. */
const errorTolerance = 1e-20;

/** A column of which less than this share is left beside the others says nothing of its own. */
const leastIndependence = 1e-7;

/**
 * The cost with the least squared relative error, none of its coefficients negative; null where nothing was timed.
 * The problem is convex, so the best of the unconstrained fits that happen to have no negative coefficient solves it.
 */
export function fitRunCost(timings: readonly Timing[]): RunCost | null {
  // Each row divided by its time, so that every error counts relative to it.
  const rows = timings
    .map((timing) => termsOf(timing).map((term) => term / timing.ms))
    .filter((row) => row.every((value) => value > 0 && Number.isFinite(value)));
  if (rows.length === 0) return null;
  let best: { readonly coefficients: number[]; readonly error: number } | null = null;
  for (const active of activeSets) {
    const coefficients = solve(rows, active);
    if (coefficients === null || !coefficients.every((value) => value >= 0 && Number.isFinite(value))) continue;
    const error = rows.reduce((sum, row) => sum + (1 - dot(row, coefficients)) ** 2, 0);
    if (best === null || error < best.error - errorTolerance) best = { coefficients, error };
  }
  if (best === null) return null;
  const [fixedMs = 0, tokenMs = 0, squaredTokenMs = 0] = best.coefficients;
  return { fixedMs, tokenMs, squaredTokenMs };
}

const dot = (left: readonly number[], right: readonly number[]): number =>
  left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0);

const normOf = (values: readonly number[]): number => Math.hypot(...values);

/** `values` without their part along the unit vector `along`. */
const without = (values: readonly number[], along: readonly number[]): number[] => {
  const share = dot(values, along);
  return values.map((value, index) => value - share * (along[index] ?? 0));
};

/**
 * Least squares of `rows * coefficients = 1` with the other coefficients zero; null where the rows do not determine
 * them. Each column is scaled to length 1, and what the others explain is taken off it twice, against rounding.
 */
function solve(rows: readonly (readonly number[])[], active: readonly number[]): number[] | null {
  const coefficients = [0, 0, 0];
  for (const index of active) {
    const basis: number[][] = [];
    for (const other of active) {
      if (other === index) continue;
      const direction = ownDirection(rows, other, basis);
      if (direction === null) return null;
      basis.push(direction.unit);
    }
    const own = ownDirection(rows, index, basis);
    if (own === null) return null;
    coefficients[index] = own.unit.reduce((sum, value) => sum + value, 0) / own.length;
  }
  return coefficients;
}

/** The part of a column that a basis does not explain: its direction, and its length. */
function ownDirection(
  rows: readonly (readonly number[])[],
  index: number,
  basis: readonly (readonly number[])[],
): { readonly unit: number[]; readonly length: number } | null {
  const column = rows.map((row) => row[index] ?? 0);
  const norm = normOf(column);
  if (!Number.isFinite(norm) || norm === 0) return null;
  let rest = column.map((value) => value / norm);
  for (const along of [...basis, ...basis]) rest = without(rest, along);
  const length = normOf(rest);
  return length < leastIndependence ? null : { unit: rest.map((value) => value / length), length: length * norm };
}
