/** Owns the runs that an executor has been given and has not answered: which of them runs now, and for how long yet. */
import type { RunBatch } from '../executor/protocol.ts';
import type { TakeWish } from './pool.ts';

/** How a run is to be taken. */
export interface RunOptions {
  /** Before all runs that are not urgent. */
  readonly isUrgent: boolean;
  /** How long it should take. @unit ms */
  readonly expectedMs: number;
}

/** A run without an answer. */
export interface OpenRun extends RunOptions {
  readonly runId: number;
  readonly batch: RunBatch;
  /** Positions that need no row. */
  readonly skipped: ReadonlySet<number>;
}

/** The open runs of one executor. */
export class OpenRuns<Run extends OpenRun = OpenRun> {
  readonly #runs = new Map<number, Run>();
  #started: { readonly runId: number; readonly atMs: number } | null = null;

  /** All of them, in the order in which they were given. */
  get all(): readonly Run[] {
    return [...this.#runs.values()];
  }

  /** Whether there is none. */
  get isEmpty(): boolean {
    return this.#runs.size === 0;
  }

  /** The run with this id, if it is open. */
  find(runId: unknown): Run | undefined {
    return typeof runId === 'number' ? this.#runs.get(runId) : undefined;
  }

  /** A run that was just given; where no other is open, it begins at once. */
  add(run: Run, nowMs: number): void {
    this.#runs.set(run.runId, run);
    if (this.#runs.size === 1) this.#started = { runId: run.runId, atMs: nowMs };
  }

  /**
   * A run was answered, and another one, named by the executor, begins. Where it named none, it had not read yet of
   * those that are open: it begins with the first urgent one, or else the first.
   */
  finish(runId: number, nextRunId: number | null, nowMs: number): void {
    this.#runs.delete(runId);
    const next = nextRunId ?? (this.all.find(({ isUrgent }) => isUrgent) ?? this.all[0])?.runId ?? null;
    this.#started = next === null ? null : { runId: next, atMs: nowMs };
  }

  /** The run that is on the device now; the others were only given to it. */
  get startedId(): number | null {
    return this.#started?.runId ?? null;
  }

  /**
   * Whether one more may be given while one runs: of either urgency one waits at most, and what is urgent is not kept
   * from coming before one that waits and is not.
   */
  hasRoom({ isUrgent, mayQueue }: TakeWish): boolean {
    const comesBeforeOthers = isUrgent && this.#runs.size > 1;
    return this.countBefore(isUrgent) === 1 && (mayQueue || comesBeforeOthers);
  }

  /**
   * Time until a run that is given now would begin; one that is late is as far from its end as it is late.
   * @unit ms
   */
  backlogMs(nowMs: number, isUrgent: boolean): number {
    let total = 0;
    for (const run of this.#runs.values()) {
      if (this.#started?.runId === run.runId) total += Math.abs(run.expectedMs - (nowMs - this.#started.atMs));
      else if (run.isUrgent || !isUrgent) total += run.expectedMs;
    }
    return total;
  }

  /** Runs that would come before one that is given now. */
  countBefore(isUrgent: boolean): number {
    return this.all.filter((run) => run.runId === this.startedId || run.isUrgent || !isUrgent).length;
  }
}
