import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { placeOnCpu } from '../../../src/device/placement.ts';

describe('placement on a CPU', () => {
  it.each([
    { cores: 1, executors: 0, maxExecutors: 8, expected: { executors: 1, threads: 1 } },
    { cores: 2, executors: 0, maxExecutors: 8, expected: { executors: 2, threads: 1 } },
    { cores: 8, executors: 0, maxExecutors: 8, expected: { executors: 8, threads: 1 } },
    { cores: 16, executors: 0, maxExecutors: 8, expected: { executors: 8, threads: 2 } },
    { cores: 15, executors: 0, maxExecutors: 4, expected: { executors: 4, threads: 3 } },
    { cores: 4, executors: 1, maxExecutors: 8, expected: { executors: 1, threads: 4 } },
    { cores: 4, executors: 3, maxExecutors: 2, expected: { executors: 3, threads: 1 } },
    { cores: 2, executors: 4, maxExecutors: 8, expected: { executors: 4, threads: 1 } },
  ])('gives $cores cores to $expected.executors x $expected.threads (asked $executors, max $maxExecutors)', (row) => {
    expect(placeOnCpu(row.cores, row)).toEqual(row.expected);
  });

  it('never uses more threads than cores when the cores decide', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 512 }), fc.integer({ min: 1, max: 64 }), (cores, maxExecutors) => {
        const { executors, threads } = placeOnCpu(cores, { executors: 0, maxExecutors });
        expect(executors).toBeLessThanOrEqual(maxExecutors);
        expect(executors * threads).toBeLessThanOrEqual(cores);
      }),
    );
  });
});
