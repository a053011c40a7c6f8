/** Owns counting what became of calls. */

/** What became of one call. */
export type Outcome =
  | {
      readonly kind: 'answered';
      /** Tokens that the server says it ran; null where it says nothing. */
      readonly tokens: number | null;
    }
  | { readonly kind: 'refused' }
  | {
      readonly kind: 'failed';
      /** What failures are counted by, such as `HTTP 500`. */
      readonly reason: string;
      readonly message: string;
    };

/** Failures of one kind. */
export interface FailureCount {
  readonly count: number;
  /** The message of the first. */
  readonly example: string;
}

/** What became of all calls of a load. */
export interface Counts {
  /** Texts of calls that were answered. */
  readonly texts: number;
  /** Tokens of those; null where any answer did not say. */
  readonly tokens: number | null;
  /** Of every answered call. @unit ms */
  readonly latenciesMs: readonly number[];
  /** Of every refusal. @unit ms */
  readonly refusalsMs: readonly number[];
  /** Calls never made, because too many were in flight. */
  readonly dropped: number;
  readonly failures: Readonly<Record<string, FailureCount>>;
}

/** A count under way. */
export interface Tally {
  add(texts: number, outcome: Outcome, latencyMs: number): void;
  drop(): void;
  /** What was counted so far. */
  counts(): Counts;
}

/** Longest example of a failure. @unit characters */
const maxExampleLength = 200;

/** A count that starts at zero. */
export function createTally(): Tally {
  const latenciesMs: number[] = [];
  const refusalsMs: number[] = [];
  const failures: Record<string, FailureCount> = {};
  let texts = 0;
  let tokens: number | null = 0;
  let dropped = 0;
  return {
    add(textsOfCall, outcome, latencyMs) {
      switch (outcome.kind) {
        case 'answered':
          texts += textsOfCall;
          tokens = tokens === null || outcome.tokens === null ? null : tokens + outcome.tokens;
          latenciesMs.push(latencyMs);
          return;
        case 'refused':
          refusalsMs.push(latencyMs);
          return;
        case 'failed': {
          const known = failures[outcome.reason];
          const example = known?.example ?? outcome.message.slice(0, maxExampleLength);
          failures[outcome.reason] = { count: (known?.count ?? 0) + 1, example };
        }
      }
    },
    drop() {
      dropped += 1;
    },
    counts: () => ({
      texts,
      tokens: latenciesMs.length === 0 ? null : tokens,
      latenciesMs,
      refusalsMs,
      dropped,
      failures,
    }),
  };
}

/** Failures of any kind. */
export const failureTotal = (failures: Counts['failures']): number =>
  Object.values(failures).reduce((sum, { count }) => sum + count, 0);
