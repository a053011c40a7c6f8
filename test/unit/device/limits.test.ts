import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { restartDelayMs } from '../../../src/device/limits.ts';

const limits = { restartBaseMs: 100, restartMaxMs: 1_000 };

describe('the pause before a restart', () => {
  it('doubles with each failure in a row until the cap', () => {
    const delays = [0, 1, 2, 3, 4, 5, 50, 5_000].map((failures) => restartDelayMs(failures, limits, () => 1));
    expect(delays).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000]);
  });

  it('is at least half of the longest pause and never above it, whatever the random number', () => {
    fc.assert(
      fc.property(fc.nat(100), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
        const longestMs = restartDelayMs(failures, limits, () => 1);
        const delayMs = restartDelayMs(failures, limits, () => random);
        expect(delayMs).toBeGreaterThanOrEqual(longestMs / 2);
        expect(delayMs).toBeLessThanOrEqual(longestMs);
      }),
    );
  });
});
