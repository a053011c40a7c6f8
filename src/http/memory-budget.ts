/** Owns the bound on the bodies and unsent answers that all requests together keep in memory. */

/** The bytes that one request holds of the common budget. */
export interface MemoryShare {
  /** Claims more; false, and nothing claimed, where the budget does not have them. */
  claim(bytes: number): boolean;
  /** Gives everything back; the share claims no more afterwards. */
  release(): void;
}

/** A budget that requests take shares of. */
export interface MemoryBudget {
  open(): MemoryShare;
}

/**
 * Bytes of its body that every request may hold beside the budget, and longest answer that is never counted, so that a
 * ping is answered however full it is.
 * @unit bytes
 */
export const freeBytes = 4096;

/** A budget of `maxBytes` for all requests together. */
export function createMemoryBudget(maxBytes: number): MemoryBudget {
  let claimedBytes = 0;
  return {
    open() {
      let heldBytes = 0;
      return {
        claim(bytes) {
          const before = Math.max(0, heldBytes - freeBytes);
          const after = Math.max(0, heldBytes + bytes - freeBytes);
          if (claimedBytes + after - before > maxBytes) return false;
          claimedBytes += after - before;
          heldBytes += bytes;
          return true;
        },
        release() {
          claimedBytes -= Math.max(0, heldBytes - freeBytes);
          heldBytes = 0;
        },
      };
    },
  };
}
