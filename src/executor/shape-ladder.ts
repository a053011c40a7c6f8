/** Owns the few sizes that a run may have on a GPU: each new size costs shaders, kernels and memory that never goes back. */

/** Up to this length every multiple of 8 is a rung of the ladder: short texts are the most frequent. @unit tokens */
const fineTokens = 64;

const fineStep = 8;

/**
 * Copies of a text that are cheaper than another run. A run of a small model takes some milliseconds however few its
 * tokens are, in which a small GPU computes about as many.
 * @unit tokens
 */
const maxCopiedTokens = 512;

/** The largest power of two that is not above `count`. */
export const powerOfTwoBelow = (count: number): number => 2 ** Math.floor(Math.log2(count));

/** The smallest power of two that is not below `count`. */
export const powerOfTwoAbove = (count: number): number => 2 ** Math.ceil(Math.log2(count));

/**
 * The length that a text is padded to: a multiple of 8 up to 64, then 96, 128, 192, 256, 384, 512 and so on, at most
 * `maxTokens`.
 * @unit tokens
 */
export function rungOf(length: number, maxTokens: number): number {
  return Math.min(maxTokens, length <= fineTokens ? Math.ceil(length / fineStep) * fineStep : coarseRungOf(length));
}

function coarseRungOf(length: number): number {
  const above = powerOfTwoAbove(length);
  const between = above * 0.75;
  return length <= between ? between : above;
}

/** Every length that texts of a model are padded to, ascending; the last is `maxTokens`. @unit tokens */
export function rungsUpTo(maxTokens: number): number[] {
  const rungs: number[] = [];
  for (let rung = 0; rung < maxTokens;) rungs.push((rung = rungOf(rung + 1, maxTokens)));
  return rungs;
}

/** Whether a text that is padded to `shorter` may share a run with one that is padded to `longest`. */
export const isNearRung = (longest: number, shorter: number): boolean => longest <= fineTokens || shorter * 2 > longest;

/**
 * How many of `count` texts go into the next run of `tokens` each: all of them, where filling up to a power of two is
 * cheap, else as many as are one.
 */
export function textsOfRun(count: number, tokens: number): number {
  const copies = powerOfTwoAbove(count) - count;
  return copies * tokens <= maxCopiedTokens ? count : powerOfTwoBelow(count);
}
