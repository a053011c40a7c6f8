/** Owns what an executor must show before it serves. */
import type { RunBatch, RunRow } from '../executor/protocol.ts';

/** A small run with a known answer. */
export interface ProofRun {
  readonly batch: RunBatch;
  /** Why the rows are not what they must be, or null where they are. */
  judge(rows: readonly RunRow[]): string | null;
}
