/** Rules of what an executor says of its memory. */
import { describe, expect, it } from 'vitest';
import { createMemoryReader, memoryReadMs } from '../../../src/executor/own-memory.ts';

describe('the memory that an executor tells', () => {
  it('is read for the first run, and never older than its bound', () => {
    let nowMs = 5;
    let reads = 0;
    const residentBytes = createMemoryReader({ nowMs: () => nowMs, read: () => 1000 * (reads += 1) });
    const told = [0, memoryReadMs - 1, 1, memoryReadMs].map((passedMs) => {
      nowMs += passedMs;
      return residentBytes();
    });
    expect(told).toEqual([1000, 1000, 2000, 3000]);
  });

  it('is that of this process', () => {
    expect(createMemoryReader()()).toBeGreaterThan(16 * 1_048_576);
  });
});
