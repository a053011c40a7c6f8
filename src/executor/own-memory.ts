/** Owns what this process says of its memory: read now and then, since reading takes a tenth of a short run. */

/** How often it is read at most. @unit ms */
export const memoryReadMs = 100;

/** What it reads, and by which clock. */
export interface MemoryParts {
  /** @unit bytes */
  readonly read: () => number;
  /** @unit ms */
  readonly nowMs: () => number;
}

const ownProcess: MemoryParts = { read: () => process.memoryUsage.rss(), nowMs: () => performance.now() };

/** Resident memory as it was no longer than `memoryReadMs` ago. @unit bytes */
export function createMemoryReader({ read, nowMs }: MemoryParts = ownProcess): () => number {
  let bytes = 0;
  let readAtMs = -Infinity;
  return () => {
    const now = nowMs();
    if (now - readAtMs >= memoryReadMs) {
      bytes = read();
      readAtMs = now;
    }
    return bytes;
  };
}
