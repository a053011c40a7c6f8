/** Owns the runs before a GPU serves: its memory is taken and its shaders are compiled before the first request. */
import { isAlone, maxRunTexts } from './plan.ts';
import type { PlanFacts, PlannedRun, RunLimits } from './plan.ts';
import type { Head, ModelLoad, RunBatch } from './protocol.ts';
import type { RunOutcome } from './run.ts';
import { powerOfTwoAbove, rungsUpTo } from './shape-ladder.ts';

/** The size of a run that is made before a device serves. */
export type WarmUpShape = Pick<PlannedRun, 'texts' | 'tokens'>;

/** Runs a batch and says how long the engine took. */
export type TimeBatch = (batch: RunBatch) => Promise<Pick<RunOutcome, 'computeMs'>>;

/** Lengths of which the largest run is made, beside the longest. @unit tokens */
const fullRunTokens = [128, 32];

/** The longest text of which a run of its own is made. @unit tokens */
const maxSingleTokens = 512;

/** What tells how fast a device is: a short text, and one that is longer by some tens of tokens. @unit tokens */
const maxPaceTokens = 64;

/**
 * The time that all models together may take before they serve, far below the time that a load may take.
 * @unit ms
 */
const warmUpBudgetMs = 15_000;

/**
 * The time that one run may take. What takes longer, on a software adapter that is, is left to the first requests.
 * @unit ms
 */
export const maxWarmUpRunMs = 2_000;

/**
 * Sizes worth running beforehand, largest first, so that memory is taken once and in one piece: full runs of a few
 * lengths, and single texts at the powers of two among the lengths. Never more than 10.
 */
export function warmUpShapes(head: Head, model: PlanFacts, limits: RunLimits): WarmUpShape[] {
  const { fixedBatch, fixedTokens } = model.runPolicy;
  const longest = fixedTokens ?? model.maxTokens;
  const isWithin = (tokens: number) => tokens === longest || (fixedTokens === null && tokens < longest);
  const fullTexts = (tokens: number) => (isAlone(model) ? 1 : maxRunTexts(tokens, head, model, limits));
  const full = [longest, ...fullRunTokens].filter(isWithin).map((tokens) => ({ texts: fullTexts(tokens), tokens }));
  const singles = rungsUpTo(Math.min(longest, maxSingleTokens))
    .filter((rung) => powerOfTwoAbove(rung) === rung && isWithin(rung))
    .map((tokens) => ({ texts: 1, tokens }));
  const sizes = [...full, ...singles].map(({ texts, tokens }) => ({ texts: fixedBatch ?? texts, tokens }));
  const unique = new Map(sizes.map((size) => [`${size.texts} ${size.tokens}`, size]));
  return [...unique.values()].sort(
    (left, right) => right.texts * right.tokens - left.texts * left.tokens || right.tokens - left.tokens,
  );
}

/**
 * Runs the sizes of each model that fit into the time. Two short texts come before them, twice each, because shaders
 * are compiled the first time: what the longer one takes more is the pace of the device.
 * @returns what is left of the time, in milliseconds
 * @throws Error where a run fails
 */
export async function warmUp(models: readonly ModelLoad[], limits: RunLimits, runBatch: TimeBatch): Promise<number> {
  const startMs = performance.now();
  const leftMs = () => warmUpBudgetMs - (performance.now() - startMs);
  for (const model of models) {
    const head = model.heads.find((one) => one !== 'maxSim');
    if (head === undefined || leftMs() <= 0) continue;
    const run = async (shape: WarmUpShape): Promise<number> => {
      const { computeMs } = await runBatch(batchOfShape(shape, model, head));
      return computeMs;
    };
    const shapes = warmUpShapes(head, model, limits);
    const [short, long] = paceShapes(shapes);
    const warmMs = async (shape: WarmUpShape | undefined): Promise<number> => {
      if (shape === undefined) return 0;
      await run(shape);
      return run(shape);
    };
    const tokenMs =
      short === long
        ? 0
        : ((await warmMs(long)) - (await warmMs(short))) / (tokensOfShape(long) - tokensOfShape(short));
    for (const shape of shapes) {
      const expectedMs = tokenMs * tokensOfShape(shape);
      if (expectedMs <= Math.min(maxWarmUpRunMs, leftMs())) await run(shape);
    }
  }
  return Math.max(0, leftMs());
}

/** Tokens of all rows of a size, 0 where there is none. */
export const tokensOfShape = (shape: WarmUpShape | undefined): number =>
  shape === undefined ? 0 : shape.texts * shape.tokens;

/** The smallest size, and the largest of those with as many texts that are still short; the same where there is one. */
function paceShapes(shapes: readonly WarmUpShape[]): readonly [WarmUpShape | undefined, WarmUpShape | undefined] {
  const short = shapes.at(-1);
  return [short, shapes.find(({ texts, tokens }) => texts === short?.texts && tokens <= maxPaceTokens) ?? short];
}

/** Texts that `planRuns` puts into one run of this size. */
export function batchOfShape({ texts, tokens }: WarmUpShape, model: ModelLoad, head: Head): RunBatch {
  const { modelId, vocabularySize } = model;
  const ids = Int32Array.from({ length: tokens }, (_, position) => position % vocabularySize);
  // A run that none may share has one text, however many rows its graph is fixed to.
  const items = Array.from({ length: isAlone(model) ? 1 : texts }, () => ({ ids, typeIds: null, keptRows: null }));
  return { modelId, head, items, queryRows: null };
}
