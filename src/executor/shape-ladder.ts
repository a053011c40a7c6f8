/** Owns the few sizes that a run may have on a GPU: each new size costs shaders, kernels and memory that never goes back. */

/** Every multiple of this is a rung of the ladder, as long as the next rule does not ask for more. @unit tokens */
const leastStep = 8;

/** Rungs to each doubling of the length where texts are long: a step is at most a 16th of the text before padding. */
const rungsPerDoubling = 16;

/**
 * What a run costs besides its tokens. A run of a small model takes some milliseconds however few its tokens are, in
 * which a small GPU computes about as many; where there are thousands of texts, more would mean padding above 5 %.
 * @unit tokens
 */
const runCostTokens = 256;

/** The largest power of two that is not above `count`. */
export const powerOfTwoBelow = (count: number): number => 2 ** Math.floor(Math.log2(count));

/** The smallest power of two that is not below `count`. */
export const powerOfTwoAbove = (count: number): number => 2 ** Math.ceil(Math.log2(count));

/**
 * The length that a text is padded to: a multiple of 8 up to 256, of 16 up to 512, of 32 up to 1,024 and so on, at most
 * `maxTokens`.
 * @unit tokens
 */
export function rungOf(length: number, maxTokens: number): number {
  const step = Math.max(leastStep, powerOfTwoAbove(length) / 2 / rungsPerDoubling);
  return Math.min(maxTokens, Math.ceil(length / step) * step);
}

/** Every length that texts of a model are padded to, ascending; the last is `maxTokens`. @unit tokens */
export function rungsUpTo(maxTokens: number): number[] {
  const rungs: number[] = [];
  for (let rung = 0; rung < maxTokens;) rungs.push((rung = rungOf(rung + 1, maxTokens)));
  return rungs;
}

/**
 * The texts of each run that together cost the least: powers of two, the last filled up with copies.
 * @param rows what each text is padded to, longest first; a run is as long as its first
 * @param maxTextsOf most texts of a run of that length, a power of two
 */
export function cheapestSplit(rows: readonly number[], maxTextsOf: (tokens: number) => number): number[] {
  const count = rows.length;
  // What the texts from each position on cost at least, and how many of them then share the first run.
  const costs = new Float64Array(count + 1);
  const sizes = new Int32Array(count);
  for (let start = count - 1; start >= 0; start -= 1) {
    const tokens = rows[start] ?? 0;
    const most = Math.min(maxTextsOf(tokens), powerOfTwoAbove(count - start));
    costs[start] = Infinity;
    for (let texts = 1; texts <= most; texts *= 2) {
      const cost = texts * tokens + runCostTokens + (costs[Math.min(start + texts, count)] ?? 0);
      if (cost > (costs[start] ?? Infinity)) continue;
      costs[start] = cost;
      sizes[start] = texts;
    }
  }
  const split: number[] = [];
  for (let start = 0; start < count; start += sizes[start] ?? 1) split.push(sizes[start] ?? 1);
  return split;
}
