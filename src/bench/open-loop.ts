/** Owns the open loop: calls arrive when they do, whether or not earlier ones are answered. */
import type { Clock } from '../clock.ts';
import type { NextRequest } from './requests.ts';
import type { Send } from './send.ts';
import type { Tally } from './tally.ts';

/** What a timer may be late by on an idle machine. @unit ms */
const timerSlackMs = 2;

/** Waits, or less where the signal aborts. */
function wait(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = () => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener('abort', end);
  });
}

/**
 * Makes calls at the times of `arrivals` until there are no more or the signal aborts, and waits for their answers.
 * A call that would exceed `maxInFlight` is dropped and counted. Latencies begin when a call was due, so that a client
 * that falls behind does not hide what its callers would have waited; only the timer's own slack is not counted.
 */
export async function runOpenLoop(load: {
  readonly next: NextRequest;
  readonly arrivals: Iterator<number>;
  readonly maxInFlight: number;
  readonly send: Send;
  readonly tally: Tally;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { next, arrivals, maxInFlight, send, tally, clock, signal } = load;
  const startMs = clock.nowMs();
  const inFlight = new Set<Promise<void>>();
  for (let arrival = arrivals.next(); arrival.done !== true; arrival = arrivals.next()) {
    const dueMs = startMs + arrival.value;
    if (dueMs > clock.nowMs()) await wait(clock, dueMs - clock.nowMs(), signal);
    const request = signal.aborted ? null : next();
    if (request === null) break;
    if (inFlight.size >= maxInFlight) {
      tally.drop();
      continue;
    }
    const lateMs = clock.nowMs() - dueMs;
    const call = send(request).then(({ outcome, elapsedMs }) => {
      tally.add(request.texts.length, outcome, elapsedMs + (lateMs <= timerSlackMs ? 0 : lateMs));
      inFlight.delete(call);
    });
    inFlight.add(call);
  }
  await Promise.all(inFlight);
}
