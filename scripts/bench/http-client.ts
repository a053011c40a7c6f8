/** Owns a client for RCP that costs as little as possible: answers checked and dropped. */
import { runCallers } from '../../src/bench/callers.ts';
import { openConnection, type LeanConnection } from './connection.ts';

/** Longest time for one answer. @unit ms */
const answerTimeoutMs = 600_000;
/** Length of the start of an answer, in which it says whether it is a result. @unit bytes */
const startBytes = 256;

/** A client of one server. */
export interface BenchClient {
  /**
   * Makes one call and gives the time it took.
   * @throws Error where the answer is no result
   * @unit ms
   */
  call(method: string, params: object): Promise<number>;
  close(): void;
}

/** A client for so many calls at a time, each on a connection of its own, which is kept. */
export function createClient(baseUrl: string, maxConnections: number): BenchClient {
  const url = new URL(baseUrl);
  const busy = new Set<LeanConnection>();
  let idle: LeanConnection[] = [];
  const take = (): LeanConnection => {
    if (busy.size === maxConnections) throw new Error(`more than ${maxConnections} calls at a time`);
    idle = idle.filter(({ isOpen }) => isOpen);
    const connection = idle.pop() ?? openConnection(url, answerTimeoutMs);
    busy.add(connection);
    return connection;
  };
  return {
    async call(method, params) {
      const connection = take();
      const frame = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
      const startMs = performance.now();
      const { status, body } = await connection.post(`/rcp/${method}`, frame).finally(() => busy.delete(connection));
      const elapsedMs = performance.now() - startMs;
      idle.push(connection);
      const start = body.toString('latin1', 0, startBytes);
      if (status !== 200 || !start.includes('"result":'))
        throw new Error(`${method} was answered with ${status} ${start}`);
      return elapsedMs;
    },
    close() {
      for (const connection of [...busy, ...idle]) connection.close();
    },
  };
}

/** Runs `work` for every index below `count`, `callers` at a time. */
export function forEachOf(count: number, callers: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  return runCallers(callers, () => (next < count ? next++ : null), work);
}
