import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { poissonArrivals } from '../../../src/bench/arrivals.ts';
import { createRandom, median, quantile } from '../../../src/bench/statistics.ts';

const values = fc.array(fc.double({ noNaN: true, min: -1e6, max: 1e6 }), { minLength: 1, maxLength: 200 });

describe('a quantile', () => {
  it('is by nearest rank: of 1 to 100, the 50th, 90th and 99th', () => {
    const numbers = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([0.5, 0.9, 0.99, 1].map((share) => quantile(numbers, share))).toEqual([50, 90, 99, 100]);
  });

  it('is one of the values, which the share of them does not exceed and less than the share is below', () => {
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 100 }), (numbers, percent) => {
        const found = quantile(numbers, percent / 100);
        expect(numbers).toContain(found);
        expect(numbers.filter((value) => value <= found).length * 100).toBeGreaterThanOrEqual(percent * numbers.length);
        expect(numbers.filter((value) => value < found).length * 100).toBeLessThan(percent * numbers.length);
      }),
    );
  });

  it('of nothing is not a number', () => {
    expect(quantile([], 0.5)).toBeNaN();
    expect(median([])).toBeNaN();
  });
});

describe('a median', () => {
  it('is the middle value, or the mean of the two in the middle', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([9, 1, 5, 3])).toBe(4);
  });

  it('does not depend on the order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer(), { minLength: 1 }), (numbers) => {
        expect(median(numbers.toReversed())).toBe(median(numbers));
      }),
    );
  });
});

describe('Poisson arrivals', () => {
  const take = (count: number, rate: number, seed: number): number[] => {
    const arrivals = poissonArrivals(rate, createRandom(seed));
    return Array.from({ length: count }, () => arrivals.next().value);
  };
  const seeds = fc.integer({ min: 0, max: 4_294_967_295 });

  it('are the same for the same seed, and others for another', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        expect(take(20, 5, seed)).toEqual(take(20, 5, seed));
        expect(take(20, 5, seed)).not.toEqual(take(20, 5, (seed + 1) % 4_294_967_296));
      }),
    );
  });

  it('ascend and are finite', () => {
    fc.assert(
      fc.property(seeds, fc.double({ min: 0.01, max: 100_000, noNaN: true }), (seed, rate) => {
        const times = take(200, rate, seed);
        expect(times.every((time, index) => time >= (times[index - 1] ?? 0) && Number.isFinite(time))).toBe(true);
      }),
    );
  });

  it('come at the rate that was asked for, with gaps that spread as exponential ones do', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const times = take(20_000, 50, seed);
        const gaps = times.map((time, index) => time - (times[index - 1] ?? 0));
        const meanMs = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
        const varianceMs = gaps.reduce((sum, gap) => sum + (gap - meanMs) ** 2, 0) / gaps.length;
        expect(meanMs).toBeGreaterThan(19);
        expect(meanMs).toBeLessThan(21);
        expect(Math.sqrt(varianceMs) / meanMs).toBeGreaterThan(0.9);
        expect(Math.sqrt(varianceMs) / meanMs).toBeLessThan(1.1);
      }),
      { numRuns: 20 },
    );
  });
});
