/** Owns which texts of a batch go through the graph together, and at which size: a pure function of their lengths. */
import type { Head, ModelLoad, ProviderName } from './protocol.ts';
import { cheapestSplit, powerOfTwoAbove, powerOfTwoBelow, rungOf } from './shape-ladder.ts';

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
  /**
   * Whether texts of different lengths are better padded than run apart, in sizes of which there are few: lengths on
   * the ladder where a mask hides padding, and powers of two of texts.
   */
  readonly isPaddingCheap: boolean;
}

/**
 * A CPU computes padding as slowly as text, and is fastest at 512 to 1,024 tokens a run. With two threads (float32, 6
 * layers of 384) 32 texts of 16 tokens ran at 18,700 tokens a second, 32 of 128 at 14,700, one of 8 at 6,000; with one
 * thread 256 texts of 12 to 23 tokens took 15 % less time grouped by length than one by one.
 */
export const cpuRunLimits: RunLimits = { maxRunTokens: 1024, isPaddingCheap: false };

/**
 * A GPU is fast only with many tokens at once, and they must fit beside the weights and within the largest buffer that
 * WebGPU surely has: the attention of 8 texts of 512 tokens in 12 heads takes 100 MB.
 */
const gpuRunTokens = { webgpu: 4096, cuda: 16_384 } as const;

/** What suits the devices of a provider. */
export function runLimitsOf(provider: ProviderName): RunLimits {
  return provider === 'cpu' ? cpuRunLimits : { maxRunTokens: gpuRunTokens[provider], isPaddingCheap: true };
}

/**
 * Most tokens of a run that makes a weight for each vocabulary entry: the logits of all of them exist inside the
 * runtime, 125 MB for 30,522 entries.
 * @unit tokens
 */
const maxVocabularyRunTokens = 1024;

/** What decides which texts share a run. */
export type PlanFacts = Pick<ModelLoad, 'runPolicy' | 'precision' | 'sparse' | 'maxTokens'>;

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

/** Consecutive parts of these sizes; the last may be smaller. */
function splitInto(positions: readonly number[], sizes: readonly number[]): number[][] {
  let start = 0;
  return sizes.map((size) => positions.slice(start, (start += size)));
}

/** Parts of the same size but for the last. */
const splitFull = (positions: readonly number[], size: number): number[][] =>
  splitInto(positions, Array<number>(Math.ceil(positions.length / size)).fill(size));

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
  const { fixedBatch, fixedTokens } = model.runPolicy;
  const hasMask = model.runPolicy.kind === 'padded';
  const hasLadder = limits.isPaddingCheap && hasMask;
  const rows = lengths.map((length) => fixedTokens ?? (hasLadder ? rungOf(length, model.maxTokens) : length));
  const rowOf = (position: number | undefined) => rows[position ?? 0] ?? 1;
  const maxTextsOf = (tokens: number) => maxRunTexts(tokens, head, model, limits);
  const split = (positions: readonly number[]): number[][] => {
    // Rows that have to be there are better filled with a shorter text than with a copy.
    if (fixedBatch !== null) return splitFull(positions, fixedBatch);
    return limits.isPaddingCheap
      ? splitInto(positions, cheapestSplit(positions.map(rowOf), maxTextsOf))
      : splitEvenly(positions, maxTextsOf(rowOf(positions[0])));
  };
  const groups = (): number[][] => {
    if (isAlone(model)) return [...lengths.keys()].map((position) => [position]);
    if (!hasMask || (!limits.isPaddingCheap && fixedBatch === null)) return groupByLength(rows).flatMap(split);
    return split([...lengths.keys()].sort((left, right) => (lengths[right] ?? 0) - (lengths[left] ?? 0)));
  };
  return groups().map((positions) => ({
    positions,
    texts: fixedBatch ?? (limits.isPaddingCheap ? powerOfTwoAbove(positions.length) : positions.length),
    tokens: Math.max(...positions.map(rowOf)),
  }));
}

/** Whether each text has a run of its own: an int8 text must have the same bits in every company. */
export const isAlone = ({ runPolicy, precision }: PlanFacts): boolean =>
  runPolicy.kind === 'alone' || precision === 'int8';

/** Most texts of one run that are padded to `tokens`. */
export function maxRunTexts(tokens: number, head: Head, model: PlanFacts, limits: RunLimits): number {
  const texts = Math.max(1, Math.floor(maxTokensOf(model, head, limits) / tokens));
  return limits.isPaddingCheap ? powerOfTwoBelow(texts) : texts;
}
