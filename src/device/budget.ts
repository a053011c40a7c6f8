/** Owns how large the batches of a device may be: less where its memory did not suffice, more again after good runs. */

/** Bounds of one batch. */
export interface BatchLimits {
  readonly maxBatchTokens: number;
  readonly maxBatchItems: number;
}

/** Runs without a shortage after which a shrunken budget is doubled. */
export const goodRunsUntilGrowth = 64;

/** The budget of one device. */
export interface BatchBudget {
  limits(): BatchLimits;
  /** Memory did not suffice for a batch of so many tokens: the next ones are at most half as large. */
  shrink(tokens: number): void;
  /** A batch ran. */
  observeGoodRun(): void;
}

/** A budget that starts at its most and never leaves one text without a run: a batch has at least one item. */
export function createBatchBudget(most: BatchLimits): BatchBudget {
  let maxBatchTokens = most.maxBatchTokens;
  let goodRuns = 0;
  return {
    limits: () => ({ ...most, maxBatchTokens }),
    shrink(tokens) {
      goodRuns = 0;
      maxBatchTokens = Math.max(1, Math.floor(Math.min(maxBatchTokens, tokens) / 2));
    },
    observeGoodRun() {
      goodRuns += 1;
      if (goodRuns < goodRunsUntilGrowth || maxBatchTokens === most.maxBatchTokens) return;
      goodRuns = 0;
      maxBatchTokens = Math.min(most.maxBatchTokens, maxBatchTokens * 2);
    },
  };
}
