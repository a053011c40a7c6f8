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
    expect(taken.batchLimits).toEqual(batchLimits);
    const outcome = await settle(taken.run(batchOf(1, 2, 3, 4)));
    expect(kindOf(outcome)).toBe('outOfMemory');
    expect(device.manager.activeCount()).toBe(0);
    expect(device.deaths[0]?.reason).toContain('it ran out of memory');
    await device.clock.advance(1_000);
    expect(take(device).batchLimits.maxBatchTokens).toBe(2);
  });
});
