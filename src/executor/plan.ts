/** Owns which texts of a batch go through the graph together, and at which size: a pure function of their lengths. */
import type { Head, ModelLoad } from './protocol.ts';

/** One pass through the graph. */
export interface PlannedRun {
  /** Positions of the texts in the batch. */
  readonly positions: readonly number[];
  /** Rows of the feeds: the texts, then copies of the last one where the graph asks for more. */
  readonly texts: number;
  /** Length of every row; shorter texts are padded to it on the right. */
  readonly tokens: number;
}

/** What suits a device. */
export interface RunLimits {
  /** Most tokens of a run of several texts, padding included; a longer text runs alone. @unit tokens */
  readonly maxRunTokens: number;
  /** Whether texts of different lengths are better padded than run apart. */
  readonly isPaddingCheap: boolean;
}

/**
 * A CPU computes padding as slowly as text, and is fastest at 512 to 1,024 tokens a run. With two threads (float32, 6
 * layers of 384) 32 texts of 16 tokens ran at 18,700 tokens a second, 32 of 128 at 14,700, one of 8 at 6,000; with one
 * thread 256 texts of 12 to 23 tokens took 15 % less time grouped by length than one by one.
 */
export const cpuRunLimits: RunLimits = { maxRunTokens: 1024, isPaddingCheap: false };

/**
 * Most tokens of a run that makes a weight for each vocabulary entry: the logits of all of them exist inside the
 * runtime, 125 MB for 30,522 entries.
 * @unit tokens
 */
const maxVocabularyRunTokens = 1024;

/** What decides which texts share a run. */
type PlanFacts = Pick<ModelLoad, 'runPolicy' | 'precision' | 'sparse'>;

/** Most tokens of a run of several texts for one head. */
function maxTokensOf({ sparse }: PlanFacts, head: Head, { maxRunTokens }: RunLimits): number {
  return head === 'sparse' && sparse?.form !== 'tokens' ? Math.min(maxRunTokens, maxVocabularyRunTokens) : maxRunTokens;
}

/** Parts of nearly equal size, none larger than `maxSize`: a full part and a tiny rest would take longer. */
function splitEvenly(positions: readonly number[], maxSize: number): number[][] {
  const parts = Math.ceil(positions.length / maxSize);
  const size = Math.ceil(positions.length / parts);
  return Array.from({ length: parts }, (_, part) => positions.slice(part * size, (part + 1) * size));
}

/** Positions with the same length, longest first. */
function groupByLength(lengths: readonly number[]): number[][] {
  const groups = new Map<number, number[]>();
  for (const [position, length] of lengths.entries()) {
    const group = groups.get(length);
    if (group === undefined) groups.set(length, [position]);
    else group.push(position);
  }
  return [...groups.entries()].sort(([left], [right]) => right - left).map(([, group]) => group);
}

/** Neighbours in length together, longest first, as many as fit once they are padded. */
function groupPadded(lengths: readonly number[], maxTextsOf: (tokens: number) => number): number[][] {
  const longestFirst = [...lengths.keys()].sort((left, right) => (lengths[right] ?? 0) - (lengths[left] ?? 0));
  const groups: number[][] = [];
  for (let start = 0; start < longestFirst.length;) {
    const longest = lengths[longestFirst[start] ?? 0] ?? 0;
    const group = longestFirst.slice(start, start + maxTextsOf(longest));
    groups.push(group);
    start += group.length;
  }
  return groups;
}

/**
 * The runs that a batch is made of; each position is in exactly one of them.
 * @param lengths tokens of each text
 */
export function planRuns(
  lengths: readonly number[],
  head: Head,
  model: PlanFacts,
  limits: RunLimits = cpuRunLimits,
): PlannedRun[] {
  const { kind, fixedBatch, fixedTokens } = model.runPolicy;
  const maxTokens = maxTokensOf(model, head, limits);
  const maxTextsOf = (tokens: number) => fixedBatch ?? Math.max(1, Math.floor(maxTokens / tokens));
  const padded = lengths.map((length) => fixedTokens ?? length);
  const group = (): number[][] => {
    // An int8 text must have the same bits in every company.
    if (kind === 'alone' || model.precision === 'int8') return [...lengths.keys()].map((position) => [position]);
    // Rows that have to be there are better filled with a shorter text than with a copy.
    if (kind === 'padded' && (limits.isPaddingCheap || fixedBatch !== null)) return groupPadded(padded, maxTextsOf);
    return groupByLength(padded).flatMap((positions) =>
      splitEvenly(positions, maxTextsOf(padded[positions[0] ?? 0] ?? 1)),
    );
  };
  return group().map((positions) => ({
    positions,
    texts: fixedBatch ?? positions.length,
    tokens: Math.max(...positions.map((position) => padded[position] ?? 0)),
  }));
}
