/** Owns the statistics that the benchmark reports. */

/** The value below which a share of the values lies; NaN for none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** The middle value. */
export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** Numbers from 0 to 1 that only the seed decides. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // A linear congruential step modulo 2^32; its low bits repeat soon, so only the high ones are used.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
}
