/** Owns the account of calls: each that was sent is answered once, under its id, by a result or an error that is known. */
import { isRetryable, judgeAnswer } from './judge.ts';

/** What became of calls. */
export interface Ledger {
  /** An id that no other call has. */
  open(): string;
  /** Takes the body that came for an id; null where its caller did not wait for one. */
  close(id: string, body: string | null): void;
  /** What should not have happened. */
  readonly faults: string[];
  readonly counts: { sent: number; results: number; errors: number; retryable: number; left: number };
  /** Ids without an answer. */
  openIds(): readonly string[];
}

/** An account without entries. */
export function createLedger(): Ledger {
  const waiting = new Set<string>();
  const faults: string[] = [];
  const counts = { sent: 0, results: 0, errors: 0, retryable: 0, left: 0 };
  return {
    faults,
    counts,
    openIds: () => [...waiting],
    open() {
      const id = `call-${++counts.sent}`;
      waiting.add(id);
      return id;
    },
    close(id, body) {
      if (!waiting.delete(id)) faults.push(`${id} was answered twice`);
      if (body === null) {
        counts.left += 1;
        return;
      }
      const { problems, code } = judgeAnswer(body, id);
      faults.push(...problems.map((problem) => `${id}: ${problem}`));
      if (code === null) counts.results += 1;
      else if (isRetryable(code)) counts.retryable += 1;
      else counts.errors += 1;
    },
  };
}
