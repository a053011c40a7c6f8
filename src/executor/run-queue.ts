/** Owns the runs that an executor was given and has not begun: urgent ones first, others never kept back for ever. */
import type { ParentMessage } from './protocol.ts';

/** A run as it is asked for. */
export type RunQuestion = Extract<ParentMessage, { type: 'run' }>;

/** A run on its way, with what has been skipped of it, which may become more while it runs. */
export interface QueuedRun {
  readonly question: RunQuestion;
  readonly skipped: ReadonlySet<number>;
}

/** Runs in the order of their turn. */
export interface RunQueue {
  add(question: RunQuestion): void;
  /** Skips items of a run that has not been answered; of others it is too late. */
  skip(runId: number, positions: readonly number[]): void;
  /** The run whose turn it is, or null; it is the current one from now on. */
  takeNext(): QueuedRun | null;
}

/** Urgent runs in a row that may come before one that waits and is not urgent. */
export const maxUrgentInARow = 4;

/** A queue without runs. */
export function createRunQueue(): RunQueue {
  const waiting: { question: RunQuestion; skipped: Set<number> }[] = [];
  let urgentInARow = 0;
  let current: (typeof waiting)[number] | null = null;
  return {
    add(question) {
      waiting.push({ question, skipped: new Set() });
    },
    skip(runId, positions) {
      const run = [current, ...waiting].find((each) => each?.question.runId === runId);
      for (const position of positions) run?.skipped.add(position);
    },
    takeNext() {
      const urgent = waiting.findIndex(({ question }) => question.isUrgent);
      const other = waiting.findIndex(({ question }) => !question.isUrgent);
      const isOthersTurn = other !== -1 && (urgent === -1 || urgentInARow >= maxUrgentInARow);
      urgentInARow = other !== -1 && !isOthersTurn ? urgentInARow + 1 : 0;
      current = waiting.splice(Math.max(0, isOthersTurn ? other : urgent), 1)[0] ?? null;
      return current;
    },
  };
}
