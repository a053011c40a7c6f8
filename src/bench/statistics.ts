/** Owns the statistics of measurements: exact quantiles, medians, and numbers that only a seed decides. */

/** Room for what multiplication of a share by a count adds in the last digits. */
const roundingSlack = 1e-9;

/** The smallest value that at least this share of the values does not exceed (nearest rank); NaN for none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = Math.max(1, Math.ceil(share * sorted.length - roundingSlack));
  return sorted[rank - 1] ?? Number.NaN;
}

/** The middle value, or the mean of the two in the middle; NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** Numbers from 0 up to 1, without 1, that only the seed decides. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // A linear congruential step modulo 2^32; its low bits repeat soon, so only the high ones are used.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
}
