/** Owns the runs that are timed before an executor serves: a few sizes of each head, from which others can be told. */
import { isAlone, maxRunTexts } from './plan.ts';
import type { PlanFacts, RunLimits } from './plan.ts';
import type { Head, HeadTimings, ModelHead, ModelLoad, Timing } from './protocol.ts';
import { batchOfShape, maxWarmUpRunMs, tokensOfShape, warmUpShapes } from './warm-up.ts';
import type { TimeBatch, WarmUpShape } from './warm-up.ts';

/** What is timed, and how long that may take. */
export interface TimingQuestion {
  readonly models: readonly ModelLoad[];
  /** Heads that are not timed. */
  readonly timedHeads: readonly ModelHead[];
  readonly limits: RunLimits;
  /** For all heads together; each is timed once at least. @unit ms */
  readonly budgetMs: number;
}

/** What timing may add to a start on a CPU. @unit ms */
export const cpuTimingBudgetMs = 1_000;

/** Lengths of single texts that are timed on a CPU: what a run costs, what a token costs, and what attention adds. */
const singleTokens = [8, 64, 256];

/** Length of the texts of the full run that is timed on a CPU. @unit tokens */
const fullRunTokens = 64;

/**
 * How often all sizes are run; the fastest run of each counts, because the first allocates and others are disturbed.
 * On a CPU that other processes keep busy, two runs of one size were up to twice as slow as the fastest of four.
 */
const gpuRounds = 2;
const cpuRounds = 4;

/**
 * Sizes worth timing, smallest first; each is a run that texts are put into. On a GPU they are those of the warm-up,
 * which have been run already.
 */
export function timedShapes(head: Head, model: PlanFacts, limits: RunLimits): WarmUpShape[] {
  if (limits.isPaddingCheap) return warmUpShapes(head, model, limits).reverse();
  const { fixedBatch, fixedTokens } = model.runPolicy;
  const longest = fixedTokens ?? model.maxTokens;
  const lengths = fixedTokens === null ? singleTokens.map((tokens) => Math.min(tokens, longest)) : [fixedTokens];
  const full = isAlone(model) || fixedBatch !== null ? [] : [Math.min(fullRunTokens, longest)];
  const sizes = [
    ...lengths.map((tokens) => ({ texts: fixedBatch ?? 1, tokens })),
    ...full.map((tokens) => ({ texts: maxRunTexts(tokens, head, model, limits), tokens })),
  ];
  const unique = new Map(sizes.map((size) => [`${size.texts} ${size.tokens}`, size]));
  return [...unique.values()].sort((left, right) => tokensOfShape(left) - tokensOfShape(right));
}

/**
 * The times of every head of the models' own graphs that is not known yet; `maxSim` is no such head, since its time
 * is that of the rows. Each head has its share of the time, and gets what others have left of theirs.
 * @throws Error where a run fails
 */
export async function timeHeads(question: TimingQuestion, runBatch: TimeBatch): Promise<HeadTimings[]> {
  const { models, timedHeads, limits, budgetMs } = question;
  const endMs = performance.now() + budgetMs;
  const rounds = limits.isPaddingCheap ? gpuRounds : cpuRounds;
  const isTimed = ({ modelId }: ModelLoad, head: Head) =>
    timedHeads.some((timed) => timed.modelId === modelId && timed.head === head);
  const untimed = models.flatMap((model) =>
    model.heads.filter((head) => head !== 'maxSim' && !isTimed(model, head)).map((head) => ({ model, head })),
  );
  const found: HeadTimings[] = [];
  for (const [index, { model, head }] of untimed.entries()) {
    const shareMs = (endMs - performance.now()) / (untimed.length - index);
    const timings = await timeShapes(timedShapes(head, model, limits), { rounds, budgetMs: shareMs }, async (shape) => {
      const { computeMs } = await runBatch(batchOfShape(shape, model, head));
      return computeMs;
    });
    found.push({ modelId: model.modelId, head, timings });
  }
  return found;
}

/** The times of the first size, and of those others that are expected to fit into the time, smallest first. */
async function timeShapes(
  shapes: readonly WarmUpShape[],
  { rounds, budgetMs }: { readonly rounds: number; readonly budgetMs: number },
  run: (shape: WarmUpShape) => Promise<number>,
): Promise<Timing[]> {
  const endMs = performance.now() + budgetMs;
  const fits = (expectedMs: number) => performance.now() + expectedMs <= endMs;
  let timings: Timing[] = [];
  for (const shape of shapes) {
    const expectedMs = expectedRunMs(timings, shape);
    const isShort = expectedMs <= maxWarmUpRunMs && fits(2 * expectedMs);
    if (timings.length === 0 || isShort) timings.push({ ...shape, ms: await run(shape) });
  }
  for (let round = 1; round < rounds; round += 1) {
    const again: Timing[] = [];
    for (const timing of timings) {
      again.push(fits(timing.ms) ? { ...timing, ms: Math.min(timing.ms, await run(timing)) } : timing);
    }
    timings = again;
  }
  return timings;
}

/**
 * From the line through the two largest sizes that were timed: one run alone says nothing of what its tokens cost, so
 * that all of its time counts as theirs.
 */
function expectedRunMs(timings: readonly Timing[], shape: WarmUpShape): number {
  const last = timings.at(-1);
  if (last === undefined) return 0;
  const before = timings.at(-2);
  const tokens = tokensOfShape(last) - (before === undefined ? 0 : tokensOfShape(before));
  const tokenMs = Math.max(0, last.ms - (before?.ms ?? 0)) / Math.max(1, tokens);
  return last.ms + tokenMs * (tokensOfShape(shape) - tokensOfShape(last));
}
