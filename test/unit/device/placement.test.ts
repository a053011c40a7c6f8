import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batchLimitsOf, maxAutomaticExecutors, placeExecutors } from '../../../src/device/placement.ts';

const asked = (executors: number) => ({ executors, gpuExecutors: 1 });

describe('placement on a CPU', () => {
  it.each([
    { cores: 1, executors: 0, expected: { executors: 1, threads: 1 } },
    { cores: 2, executors: 0, expected: { executors: 2, threads: 1 } },
    { cores: 16, executors: 0, expected: { executors: 16, threads: 1 } },
    { cores: 32, executors: 0, expected: { executors: 16, threads: 2 } },
    { cores: 63, executors: 0, expected: { executors: 16, threads: 3 } },
    { cores: 4, executors: 1, expected: { executors: 1, threads: 4 } },
    { cores: 4, executors: 3, expected: { executors: 3, threads: 1 } },
    { cores: 2, executors: 4, expected: { executors: 4, threads: 1 } },
  ])('gives $cores cores to $expected.executors x $expected.threads (asked $executors)', (row) => {
    expect(placeExecutors('cpu', row.cores, asked(row.executors))).toEqual(row.expected);
  });

  it('never uses more threads than cores when the cores decide', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 512 }), (cores) => {
        const { executors, threads } = placeExecutors('cpu', cores, asked(0));
        expect(executors).toBeLessThanOrEqual(maxAutomaticExecutors);
        expect(executors * threads).toBeLessThanOrEqual(cores);
      }),
    );
  });
});

describe('placement on a GPU', () => {
  it('gives as many executors as were asked for, whatever the cores', () => {
    expect(placeExecutors('cuda', 64, asked(9))).toEqual({ executors: 1, threads: 1 });
    expect(placeExecutors('webgpu', 2, { executors: 9, gpuExecutors: 3 })).toEqual({ executors: 3, threads: 1 });
  });
});

describe('the batches of a device', () => {
  it('are as large as its kind of device is given', () => {
    const settings = { maxBatchTokens: 1, maxBatchItems: 2, maxGpuBatchTokens: 3, maxGpuBatchItems: 4 };
    expect(batchLimitsOf('cpu', settings)).toEqual({ maxBatchTokens: 1, maxBatchItems: 2 });
    expect(batchLimitsOf('cuda', settings)).toEqual({ maxBatchTokens: 3, maxBatchItems: 4 });
    expect(batchLimitsOf('webgpu', settings)).toEqual({ maxBatchTokens: 3, maxBatchItems: 4 });
  });
});
