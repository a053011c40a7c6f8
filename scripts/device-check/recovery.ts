/** Owns killing the executors of a server under load: what becomes of the calls, and how long it is not ready. */
import { setTimeout as sleep } from 'node:timers/promises';
import { executorPids } from '../../test/support/executors.ts';
import { RpcError, type Served } from '../../test/support/served.ts';
import { within, type TimeBudget } from './budget.ts';

const callers = 16;
/** Calls that each caller makes after the server is ready again. */
const callsAfterwards = 2;
const pollMs = 20;

/** What the kill came to. */
export interface Recovery {
  readonly killed: number;
  readonly calls: number;
  readonly answered: number;
  /** Calls that got an error as their answer, by its code. */
  readonly refused: Readonly<Record<string, number>>;
  /** Calls without any answer. */
  readonly missing: number;
  /** From the kill until the server was ready on new executors; null where it was not in time. @unit ms */
  readonly readyAgainMs: number | null;
}

/** Kills every executor with SIGKILL while callers call without a pause. */
export async function killUnderLoad(
  served: Served,
  call: (index: number) => Promise<unknown>,
  budget: TimeBudget,
): Promise<Recovery> {
  const refused: Record<string, number> = {};
  let [calls, answered, missing] = [0, 0, 0];
  let left = Infinity;
  const caller = async () => {
    for (; left > 0 && budget.remainingMs() > 0; left -= 1) {
      const index = calls++;
      try {
        await within(budget, call(index));
        answered += 1;
      } catch (error) {
        if (error instanceof RpcError) refused[error.code] = (refused[error.code] ?? 0) + 1;
        else missing += 1;
      }
    }
  };
  const load = Promise.all(Array.from({ length: callers }, caller));
  await waitFor(() => answered >= callers, budget);
  const victims = executorPids(served.pid);
  const killedAt = performance.now();
  for (const pid of victims) process.kill(pid, 'SIGKILL');
  const isReady = async () => {
    const pids = executorPids(served.pid);
    if (pids.length < victims.length || pids.some((pid) => victims.includes(pid))) return false;
    return (await fetch(`${served.baseUrl}/health/ready`)).status === 200;
  };
  const isBack = await waitFor(isReady, budget);
  const readyAgainMs = isBack ? performance.now() - killedAt : null;
  left = callers * callsAfterwards;
  await load;
  return { killed: victims.length, calls, answered, refused, missing, readyAgainMs };
}

/** Whether it came true in time. */
async function waitFor(condition: () => boolean | Promise<boolean>, budget: TimeBudget): Promise<boolean> {
  while (budget.remainingMs() > 0) {
    if (await condition()) return true;
    await sleep(pollMs);
  }
  return false;
}
