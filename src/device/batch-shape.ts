/** Owns what a device makes of a batch: which runs, and how long each should take. */
import { isAlone, maxRunTexts, planRuns, runLimitsOf, type PlannedRun } from '../executor/plan.ts';
import type { Head, ModelLoad, ProviderName } from '../executor/protocol.ts';
import type { BatchLimits } from './budget.ts';
import { runMs, type RunCost } from './cost-model.ts';

export type { PlannedRun };

/** How items of one model are run for one head. */
export interface BatchShape {
  readonly limits: BatchLimits;
  /** Whether each text has a run of its own, so that it does not matter with whom it is in a batch. */
  readonly isAlone: boolean;
  /** The runs that texts of these lengths would be made into; each position is in exactly one. */
  plan(lengths: readonly number[]): readonly PlannedRun[];
  /** How long a run should take. @unit ms */
  runMs(run: Pick<PlannedRun, 'texts' | 'tokens'>): number;
  /** What one text of such a length should take where there are enough others beside it. @unit ms */
  textMs(tokens: number): number;
}

/** What a batch of texts of these lengths should take. @unit ms */
export const batchMs = (shape: BatchShape, lengths: readonly number[]): number =>
  shape.plan(lengths).reduce((sum, run) => sum + shape.runMs(run), 0);

/** What a shape follows from. */
export interface ShapeFacts {
  readonly load: ModelLoad;
  readonly head: Head;
  readonly provider: ProviderName;
  readonly limits: BatchLimits;
  /** null where nothing was timed. */
  readonly cost: RunCost | null;
  /** How much longer runs take of late than they should. */
  readonly drift: number;
}

/** What is assumed where nothing was timed; the drift makes up for it. */
const assumedCost: RunCost = { fixedMs: 0, tokenMs: 0.1, squaredTokenMs: 0 };

/** The shape of batches on a device. */
export function batchShape({ load, head, provider, limits, cost, drift }: ShapeFacts): BatchShape {
  const runLimits = runLimitsOf(provider);
  const expectedMs: BatchShape['runMs'] = (run) => drift * runMs(cost ?? assumedCost, run);
  const areAlone = isAlone(load);
  return {
    limits,
    isAlone: areAlone,
    plan: (lengths) => planRuns(lengths, head, load, runLimits),
    runMs: expectedMs,
    textMs(tokens) {
      const { fixedBatch, fixedTokens } = load.runPolicy;
      const rowTokens = fixedTokens ?? tokens;
      const texts = areAlone ? 1 : (fixedBatch ?? maxRunTexts(rowTokens, head, load, runLimits));
      return expectedMs({ texts: fixedBatch ?? texts, tokens: rowTokens }) / texts;
    },
  };
}

/** Part of what was known that counts on after each run: about the last twenty runs decide. */
const keptShare = 0.95;
/** Beyond this much longer or shorter something else is wrong than the expectation. */
const maxDrift = 50;

/** How much longer runs take than their fitted cost says: other work on the machine, a clock that was lowered. */
export class Drift {
  #actualMs = 0;
  #fittedMs = 0;

  /** Counts a run. @param fittedMs what it should have taken without any drift */
  observe(actualMs: number, fittedMs: number): void {
    if (!(actualMs > 0) || !(fittedMs > 0)) return;
    this.#actualMs = keptShare * this.#actualMs + actualMs;
    this.#fittedMs = keptShare * this.#fittedMs + fittedMs;
  }

  /** 1 before the first run. */
  get factor(): number {
    if (this.#fittedMs === 0) return 1;
    return Math.min(maxDrift, Math.max(1 / maxDrift, this.#actualMs / this.#fittedMs));
  }
}
