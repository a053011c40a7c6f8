import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitRunCost, runMs } from '../../../src/device/cost-model.ts';
import type { RunCost } from '../../../src/device/cost-model.ts';
import type { Timing } from '../../../src/executor/protocol.ts';

const timed = (cost: RunCost, sizes: readonly (readonly [number, number])[]): Timing[] =>
  sizes.map(([texts, tokens]) => ({ texts, tokens, ms: runMs(cost, { texts, tokens }) }));
const coefficient = (max: number) => fc.oneof(fc.constant(0), fc.double({ min: max / 1000, max, noNaN: true }));
const anyCost = fc
  .record({ fixedMs: coefficient(20), tokenMs: coefficient(1), squaredTokenMs: coefficient(0.01) })
  .filter((cost) => Object.values(cost).some((value) => value > 0));
const anySize = fc.tuple(fc.integer({ min: 1, max: 64 }), fc.integer({ min: 1, max: 512 }));
const spread: [number, number][] = [
  [1, 8],
  [1, 64],
  [1, 256],
  [16, 64],
];

const errorOf = (cost: RunCost, timings: readonly Timing[]) =>
  timings.reduce((sum, timing) => sum + (runMs(cost, timing) / timing.ms - 1) ** 2, 0);

describe('the time of a run', () => {
  it('is what a run, each token and each pair of tokens of a text cost', () => {
    const cost = { fixedMs: 5, tokenMs: 0.5, squaredTokenMs: 0.01 };
    expect(runMs(cost, { texts: 3, tokens: 10 })).toBeCloseTo(5 + 0.5 * 30 + 0.01 * 300, 12);
  });
});

describe('a cost fitted to timed runs', () => {
  it('is the one that they were made by, where they are exact and differ enough', () => {
    fc.assert(
      fc.property(anyCost, fc.array(anySize, { maxLength: 10 }), (cost, sizes) => {
        const fitted = fitRunCost(timed(cost, [...spread, ...sizes]));
        expect(fitted).not.toBeNull();
        if (fitted === null) return;
        // What a coefficient is off by, by what it adds to the runs that were timed.
        const scale = Math.min(...timed(cost, spread).map(({ ms }) => ms));
        expect(Math.abs(fitted.fixedMs - cost.fixedMs) / Math.max(scale, cost.fixedMs)).toBeLessThan(1e-6);
        for (const size of [...spread, ...sizes, [8, 512], [2, 100]] as const) {
          const [texts, tokens] = size;
          const expected = runMs(cost, { texts, tokens });
          expect(Math.abs(runMs(fitted, { texts, tokens }) / expected - 1)).toBeLessThan(1e-6);
        }
      }),
    );
  });

  it('is never negative and always a number, whatever was timed', () => {
    const anyNumber = fc.oneof(
      fc.double(),
      fc.integer({ min: 1, max: 4096 }),
      fc.constantFrom(0, -1, Infinity, 5e-324),
    );
    const anyTiming = fc.record({ texts: anyNumber, tokens: anyNumber, ms: anyNumber });
    fc.assert(
      fc.property(fc.array(anyTiming, { maxLength: 8 }), (timings) => {
        const cost = fitRunCost(timings);
        for (const value of Object.values(cost ?? {})) {
          expect(Number.isFinite(value) && value >= 0).toBe(true);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('has no smaller relative error with any other coefficients that are not negative', () => {
    const anyTiming = fc
      .tuple(anySize, fc.double({ min: 0.01, max: 1_000, noNaN: true }))
      .map(([[texts, tokens], ms]) => ({ texts, tokens, ms }));
    fc.assert(
      fc.property(fc.array(anyTiming, { minLength: 1, maxLength: 8 }), fc.array(anyCost), (timings, others) => {
        const fitted = fitRunCost(timings);
        if (fitted === null) throw new Error('something was timed');
        const least = errorOf(fitted, timings);
        const near = [0.99, 1.01].flatMap((factor) => [
          { ...fitted, fixedMs: fitted.fixedMs * factor },
          { ...fitted, tokenMs: fitted.tokenMs * factor },
          { ...fitted, squaredTokenMs: fitted.squaredTokenMs * factor },
        ]);
        for (const other of [...others, ...near]) {
          expect(errorOf(other, timings)).toBeGreaterThanOrEqual(least - 1e-9 * (1 + least));
        }
      }),
    );
  });

  it('is a time for each token where there is one timing, and for each run and token where there are two', () => {
    expect(fitRunCost([{ texts: 2, tokens: 8, ms: 4 }])).toEqual({ fixedMs: 0, tokenMs: 0.25, squaredTokenMs: 0 });
    const two = fitRunCost([
      { texts: 1, tokens: 8, ms: 3 },
      { texts: 1, tokens: 16, ms: 4 },
    ]);
    expect(two?.fixedMs).toBeCloseTo(2, 9);
    expect(two?.tokenMs).toBeCloseTo(0.125, 9);
    expect(two?.squaredTokenMs).toBe(0);
  });

  it('leaves out what is no timing, and is null where nothing is left', () => {
    const useless = [
      { texts: 0, tokens: 8, ms: 1 },
      { texts: 1, tokens: 8, ms: 0 },
      { texts: 1, tokens: 8, ms: Number.NaN },
      { texts: -1, tokens: 8, ms: 1 },
    ];
    expect(fitRunCost([])).toBeNull();
    expect(fitRunCost(useless)).toBeNull();
    const useful = timed({ fixedMs: 1, tokenMs: 0.1, squaredTokenMs: 0.001 }, spread);
    expect(fitRunCost([...useless, ...useful])).toEqual(fitRunCost(useful));
  });
});
