/** Owns when the requests of an open loop arrive. */

/**
 * Times of arrivals after the start, ascending, without end: a Poisson process, whose gaps are exponential.
 * @unit ms
 */
export function* poissonArrivals(ratePerSecond: number, random: () => number): Generator<number, never> {
  let atMs = 0;
  for (;;) {
    atMs += (-Math.log(1 - random()) * 1000) / ratePerSecond;
    yield atMs;
  }
}
