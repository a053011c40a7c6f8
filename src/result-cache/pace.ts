/** Owns the turns of the event loop between slices of work on many rows. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Bytes that are hashed or copied between two turns: about 1 ms. */
const bytesPerTurn = 1_048_576;
/** What any row costs beside its bytes, as bytes. */
const rowCostBytes = 4096;

/** Counts work, and says when others have their turn. */
export class Pace {
  #spentBytes = 0;

  /** A turn to wait for, or null while there is no need. */
  spend(bytes: number): Promise<void> | null {
    this.#spentBytes += bytes + rowCostBytes;
    if (this.#spentBytes < bytesPerTurn) return null;
    this.#spentBytes = 0;
    return nextTurn();
  }
}
