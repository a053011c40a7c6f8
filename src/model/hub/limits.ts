/** Owns every bound of a download. */

/** Bounds of a download; tests bring smaller ones. */
export interface HubLimits {
  /** Tries in a row that bring nothing before a file is given up. */
  readonly maxAttempts: number;
  /** Bytes that a try must bring to count as progress, so that a bad line has a bounded number of tries. */
  readonly minProgressBytes: number;
  readonly firstBackoffMs: number;
  readonly maxBackoffMs: number;
  /** A server that wants a longer pause is not waited for. */
  readonly maxRetryAfterMs: number;
  /** Longest silence of a server, before and between bytes. */
  readonly stallMs: number;
  readonly maxRedirects: number;
  /** Largest answer of the hub's interface, which is held in memory. */
  readonly maxAnswerBytes: number;
  readonly maxListingPages: number;
  /** Time between two signs of life of the owner of a lock. */
  readonly heartbeatMs: number;
  /** Silence after which an owner counts as dead. */
  readonly ownerDeadMs: number;
  readonly lockPollMs: number;
  readonly maxLockWaitMs: number;
}

const mebibyte = 1_048_576;

/** Bounds in use. */
export const hubLimits: HubLimits = {
  maxAttempts: 6,
  minProgressBytes: mebibyte,
  firstBackoffMs: 500,
  maxBackoffMs: 30_000,
  maxRetryAfterMs: 120_000,
  stallMs: 60_000,
  maxRedirects: 5,
  maxAnswerBytes: 16 * mebibyte,
  maxListingPages: 20,
  heartbeatMs: 5_000,
  ownerDeadMs: 60_000,
  lockPollMs: 1_000,
  maxLockWaitMs: 3_600_000,
};
