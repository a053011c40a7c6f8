/** Owns measuring pings beside a load. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const workerPath = fileURLToPath(new URL('ping-worker.ts', import.meta.url));
/** Longest time for the pinging process to start, or to end. @unit ms */
const workerTimeoutMs = 60_000;

/** Times of the pings that were made while `load` ran. @unit ms */
export async function pingDuring(baseUrl: string, load: () => Promise<unknown>): Promise<number[]> {
  const worker = fork(workerPath, [baseUrl], { execArgv: ['--import', 'tsx'], serialization: 'advanced' });
  try {
    await once(worker, 'message', { signal: AbortSignal.timeout(workerTimeoutMs) });
    await load();
    const answered = once(worker, 'message', { signal: AbortSignal.timeout(workerTimeoutMs) });
    worker.send('stop');
    const [pingMs] = (await answered) as [number[]];
    return pingMs;
  } finally {
    worker.kill('SIGKILL');
  }
}
