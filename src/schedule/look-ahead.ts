/** Owns the choice of runs from all that waits, where it matters which texts run together. */
import { batchMs, type BatchShape, type PlannedRun } from '../device/batch-shape.ts';
import type { BatchBounds, BatchPick, CallQueue, Candidate } from './view.ts';

/** Waiting items that are looked at for one batch; sorting them takes well below a millisecond. */
export const maxLookAheadItems = 1024;

/**
 * How long the item whose turn it is may be overtaken by others that run better together; then its run is the next.
 * @unit ms
 */
export const maxOvertakenMs = 250;

/** What decides which runs are taken. */
export interface LookAheadFacts {
  readonly shape: BatchShape;
  readonly bounds: BatchBounds;
  readonly nowMs: number;
}

/** A run with what speaks for it. */
interface WeighedRun {
  readonly run: PlannedRun;
  readonly expectedMs: number;
  /** Tokens of texts, not of padding. */
  readonly tokensPerMs: number;
  /** Whether the item whose turn it is runs in it, and has been overtaken for long enough. */
  readonly isDue: boolean;
}

/**
 * The runs with the most useful tokens per millisecond, as many as fit, the best first; before them that of the item
 * whose turn it is, if it has waited too long.
 */
export function pickRuns<Call extends CallQueue>(
  candidates: Iterable<Candidate<Call>>,
  { shape, bounds, nowMs }: LookAheadFacts,
): Omit<BatchPick<Call>, 'lane'> {
  const seen = firstOf(candidates, maxLookAheadItems);
  const lengths = seen.map(({ item }) => item.tokens);
  const lengthsOf = (positions: readonly number[]) => positions.map((position) => lengths[position] ?? 0);
  const isOverdue = nowMs - (seen[0]?.item.queuedAtMs ?? nowMs) > maxOvertakenMs;
  const weigh = (run: PlannedRun): WeighedRun => {
    const expectedMs = shape.runMs(run);
    const tokensPerMs = sumOf(lengthsOf(run.positions)) / Math.max(expectedMs, Number.EPSILON);
    return { run, expectedMs, tokensPerMs, isDue: isOverdue && run.positions.includes(0) };
  };
  const weighed = shape
    .plan(lengths)
    .map(weigh)
    .sort((left, right) => Number(right.isDue) - Number(left.isDue) || right.tokensPerMs - left.tokensPerMs);

  let picked: readonly number[] = [];
  let tokens = 0;
  let expectedMs = 0;
  for (const { run, expectedMs: runMs, isDue } of weighed) {
    const isFirst = picked.length === 0;
    // Only the first is cut: a part of a run takes more for each text than the whole.
    const order = isDue ? leadFirst(run.positions) : run.positions;
    const positions = isFirst ? order.slice(0, fittingTexts(lengthsOf(order), shape, bounds)) : order;
    const runTokens = sumOf(lengthsOf(positions));
    const isTooMuch =
      picked.length + positions.length > bounds.maxItems ||
      tokens + runTokens > bounds.maxTokens ||
      expectedMs + runMs > bounds.maxMs;
    if (!isFirst && isTooMuch) continue;
    const together = [...picked, ...positions];
    // The device plans the batch anew, and may find other runs than those that were picked.
    const togetherMs = batchMs(shape, lengthsOf(together));
    if (!isFirst && togetherMs > bounds.maxMs) continue;
    picked = together;
    tokens += runTokens;
    expectedMs = togetherMs;
  }
  return { items: picked.flatMap((position) => seen[position] ?? []), expectedMs };
}

/** The item whose turn it is before the others of its run, where not all of them fit. */
const leadFirst = (positions: readonly number[]): number[] => [0, ...positions.filter((position) => position !== 0)];

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/**
 * How many of the first texts of a run fit into the bounds, at least one; where one alone takes longer than a batch
 * may, as many as take no longer than that one.
 */
function fittingTexts(lengths: readonly number[], shape: BatchShape, bounds: BatchBounds): number {
  const maxMs = Math.max(bounds.maxMs, batchMs(shape, lengths.slice(0, 1)));
  const fits = (count: number) => {
    const first = lengths.slice(0, count);
    return count <= bounds.maxItems && sumOf(first) <= bounds.maxTokens && batchMs(shape, first) <= maxMs;
  };
  if (fits(lengths.length)) return lengths.length;
  let fitting = 1;
  let tooMany = lengths.length;
  while (tooMany - fitting > 1) {
    const count = Math.floor((fitting + tooMany) / 2);
    if (fits(count)) fitting = count;
    else tooMany = count;
  }
  return fitting;
}

function firstOf<Value>(values: Iterable<Value>, count: number): Value[] {
  const first: Value[] = [];
  for (const value of values) {
    if (first.length >= count) break;
    first.push(value);
  }
  return first;
}
