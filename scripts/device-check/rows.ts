/** Owns the rows of the check: how each is bounded, judged, printed and counted. */
import { formatTable } from '../../src/bench/table.ts';
import { within, type TimeBudget } from './budget.ts';

/** What a check found. */
export interface Finding<Made = null> {
  /** Whether it is as it must be; null where nothing says what it must be. */
  readonly isGood: boolean | null;
  readonly value: string;
  readonly detail: string;
  /** Numbers for the JSON. */
  readonly facts?: unknown;
  /** What later checks need of this one. */
  readonly made: Made;
}

/** A line of the table. */
export interface Row {
  /** Provider, or the machine. */
  readonly on: string;
  readonly check: string;
  readonly verdict: 'ok' | 'FAILED' | 'measured' | 'not run';
  readonly value: string;
  readonly detail: string;
  readonly tookMs: number;
  readonly facts: unknown;
}

/** How long a check may take. */
export interface Bounds {
  /** Where less is left, it is not begun. @unit ms */
  readonly leastMs: number;
  /** @unit ms */
  readonly mostMs: number;
}

/** A check cannot be made here, for a reason that is nobody's fault. */
export class CannotRun extends Error {
  override readonly name = 'CannotRun';
}

/** Part of a row's bound after which the work should come to its end by itself. */
const softShare = 0.8;

/** Takes one row after the other. */
export interface RowTaker {
  /** Makes the check within its bounds and gives what it made; whatever it throws becomes its row, and gives null. */
  take<Made>(
    on: string,
    check: string,
    bounds: Bounds,
    work: (part: TimeBudget) => Promise<Finding<Made>>,
  ): Promise<Made | null>;
  /** A row for what cannot be tried at all. */
  skip(on: string, check: string, reason: string): void;
  readonly rows: readonly Row[];
}

/** A taker whose rows all end within the budget; each is told to `onRow` as it comes. */
export function createRowTaker(budget: TimeBudget, onRow: (row: Row) => void): RowTaker {
  const rows: Row[] = [];
  const add = (row: Row): void => {
    rows.push(row);
    onRow(row);
  };
  const notRun = (on: string, check: string, detail: string): void => {
    add({ on, check, verdict: 'not run', value: '', detail, tookMs: 0, facts: null });
  };
  return {
    rows,
    skip: notRun,
    async take(on, check, { leastMs, mostMs }, work) {
      const startMs = budget.remainingMs();
      if (startMs < leastMs) {
        notRun(on, check, 'no time left');
        return null;
      }
      const hard = budget.part(mostMs);
      const tookMs = () => startMs - budget.remainingMs();
      try {
        const { isGood, value, detail, facts, made } = await within(
          hard,
          work(budget.part(hard.remainingMs() * softShare)),
        );
        const verdict = isGood === null ? 'measured' : isGood ? 'ok' : 'FAILED';
        add({ on, check, verdict, value, detail, tookMs: tookMs(), facts: facts ?? null });
        return made;
      } catch (error) {
        const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
        if (error instanceof CannotRun) notRun(on, check, reason);
        else add({ on, check, verdict: 'FAILED', value: '', detail: reason, tookMs: tookMs(), facts: null });
        return null;
      }
    },
  };
}

/** Longest detail in the table; the JSON has all of it. @unit characters */
const maxDetail = 160;

const cut = (text: string): string => (text.length > maxDetail ? `${text.slice(0, maxDetail - 1)}…` : text);

/** The rows as a table for a person. */
export function showRows(rows: readonly Row[]): string {
  const cells = rows.map(({ on, check, verdict, value, detail, tookMs }) => [
    on,
    check,
    verdict,
    value,
    tookMs === 0 ? '' : (tookMs / 1000).toFixed(1),
    cut(detail),
  ]);
  return formatTable(['on', 'check', 'verdict', 'value', 'seconds', 'detail'], cells);
}

/** Whether anything that was tried is not as it must be. */
export const hasFailure = (rows: readonly Row[]): boolean => rows.some(({ verdict }) => verdict === 'FAILED');
