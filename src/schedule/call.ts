/** Owns the promise of one run of a call: its items, its rows, and that it settles exactly once. */
import type { RunItem, RunRow } from '../executor/protocol.ts';
import type { Item, Lane, RunKey } from './item.ts';
import type { WaitingCall } from './queue.ts';
import { fingerprint } from './twins.ts';

/** Items of one caller that run under one key. */
export interface Job {
  readonly key: RunKey;
  readonly lane: Lane;
  readonly items: readonly RunItem[];
  /** Aborts with a ServiceError as its reason. */
  readonly signal: AbortSignal;
  /** Path of an item in the caller's params, for errors. */
  readonly fieldOf: (index: number) => string;
  readonly onItemDone: (() => void) | null;
  /** Names the request in the log. */
  readonly requestId?: string;
}

/** What a job gave. */
export interface JobOutcome {
  /** In the order of the job's items. */
  readonly rows: readonly RunRow[];
  /** Until the first item started. @unit ms */
  readonly queueMs: number;
  /** Its share of the engine's time. @unit ms */
  readonly computeMs: number;
  readonly device: string | null;
}

/** A job in the scheduler. */
export class ScheduledCall implements WaitingCall {
  readonly job: Job;
  readonly key: RunKey;
  readonly items: readonly Item[];
  waiting: Item[];
  readonly outcome: Promise<JobOutcome>;
  isSettled = false;
  #rows: (RunRow | undefined)[];
  #missing: number;
  #firstStartMs: number | null = null;
  #computeMs = 0;
  #device: string | null = null;
  readonly #createdMs: number;
  #resolve: (outcome: JobOutcome) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  /**
   * A call whose items wait; `textMs` is what a text of so many tokens should take. Where each text runs for itself the
   * longest go first: short ones at the end let all executors end together.
   */
  constructor(job: Job, nowMs: number, textMs: (tokens: number) => number, isLongestFirst = false) {
    this.job = job;
    this.key = job.key;
    this.#createdMs = nowMs;
    this.items = job.items.map((run, index) => ({
      key: job.key,
      run,
      tokens: run.ids.length,
      expectedMs: textMs(run.ids.length),
      fingerprint: fingerprint(run.ids),
      index,
      queuedAtMs: nowMs,
      state: 'queued',
      lostRuns: 0,
      lostStarts: 0,
      mustRunAlone: false,
    }));
    this.waiting = [...this.items];
    if (isLongestFirst) this.waiting.sort((left, right) => right.tokens - left.tokens);
    this.#rows = new Array<RunRow | undefined>(job.items.length);
    this.#missing = job.items.length;
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Notes when a run of one of its items began, which it may have joined later. */
  started(atMs: number, device: string): void {
    this.#firstStartMs = Math.max(this.#createdMs, Math.min(atMs, this.#firstStartMs ?? atMs));
    this.#device = device;
  }

  /** Stores a row; the last one settles the call. */
  complete(item: Item, row: RunRow, computeMs: number): void {
    this.#rows[item.index] = row;
    this.#computeMs += computeMs;
    this.#missing -= 1;
    this.job.onItemDone?.();
    if (this.#missing > 0 || this.isSettled) return;
    this.isSettled = true;
    this.#resolve({
      rows: this.#rows as RunRow[],
      queueMs: (this.#firstStartMs ?? this.#createdMs) - this.#createdMs,
      computeMs: this.#computeMs,
      device: this.#device,
    });
  }

  /** Settles the call with an error. */
  fail(error: unknown): void {
    this.isSettled = true;
    this.#reject(error);
  }
}
