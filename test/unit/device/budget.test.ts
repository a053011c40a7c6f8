import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBatchBudget, goodRunsUntilGrowth } from '../../../src/device/budget.ts';
import { batchLimits, batchOf, createDevice, isProof, kindOf, settle, start, take } from './device.ts';

describe('the budget of a device', () => {
  it('is at most half of what did not fit, and never leaves a text without a run', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), fc.array(fc.integer({ min: 1, max: 20_000 })), (most, sizes) => {
        const budget = createBatchBudget({ maxBatchTokens: most, maxBatchItems: 4 });
        for (const tokens of sizes) {
          budget.shrink(tokens);
          const { maxBatchTokens } = budget.limits();
          expect(maxBatchTokens).toBeGreaterThanOrEqual(1);
          expect(maxBatchTokens).toBeLessThanOrEqual(Math.max(1, tokens / 2));
        }
      }),
    );
  });

  it('doubles after enough good runs, up to what it was', () => {
    const budget = createBatchBudget({ maxBatchTokens: 100, maxBatchItems: 4 });
    const runWell = (runs: number) => {
      for (let run = 0; run < runs; run += 1) budget.observeGoodRun();
    };
    budget.shrink(60);
    runWell(goodRunsUntilGrowth - 1);
    expect(budget.limits().maxBatchTokens).toBe(30);
    runWell(1);
    expect(budget.limits().maxBatchTokens).toBe(60);
    runWell(10 * goodRunsUntilGrowth);
    expect(budget.limits()).toEqual({ maxBatchTokens: 100, maxBatchItems: 4 });
  });
});

describe('an executor whose memory did not suffice', () => {
  it('is replaced, and the next batches of its device are smaller', async () => {
    const device = createDevice({
      run: (batch) =>
        isProof(batch) ? [{ values: Float32Array.of(99, 1), indices: null }] : { failed: 'full', kind: 'outOfMemory' },
    });
    await start(device);
    const taken = take(device);
    expect(taken.shapeOf('m', 'dense').limits).toEqual(batchLimits);
    const outcome = await settle(taken.run(batchOf(1, 2, 3, 4), 1).result);
    expect(kindOf(outcome)).toBe('outOfMemory');
    expect(device.manager.activeCount()).toBe(0);
    expect(device.deaths[0]?.reason).toContain('it ran out of memory');
    await device.clock.advance(1_000);
    expect(take(device).shapeOf('m', 'dense').limits.maxBatchTokens).toBe(2);
  });

  it('is not ready meanwhile, and says why, however often that happens', async () => {
    const device = createDevice({
      run: (batch) =>
        isProof(batch) ? [{ values: Float32Array.of(99, 1), indices: null }] : { failed: 'full', kind: 'outOfMemory' },
    });
    await start(device);
    for (let round = 1; round <= 3; round += 1) {
      expect(kindOf(await settle(take(device).run(batchOf(1), 1).result))).toBe('outOfMemory');
      const { isReady, reasons } = device.manager.readiness();
      expect([isReady, reasons]).toEqual([false, [expect.stringContaining('ran out of memory')]]);
      await device.clock.advance(1_000);
      expect(device.manager.readiness()).toEqual({ isReady: true, reasons: [] });
      expect(device.deaths).toHaveLength(round);
    }
  });
});
