/** Owns a client for RCP that costs as little as possible: answers checked and dropped. */
import { runCallers } from '../../src/bench/callers.ts';
import { createHttpClient } from '../../src/bench/http-client.ts';

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

/** A client with up to `connections` connections. */
export function createClient(baseUrl: string, connections: number): BenchClient {
  const client = createHttpClient(baseUrl, { maxConnections: connections, timeoutMs: answerTimeoutMs });
  return {
    async call(method, params) {
      const frame = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
      const { status, body, elapsedMs } = await client.post(`/rcp/${method}`, frame);
      const start = body.toString('latin1', 0, startBytes);
      if (status === 200 && start.includes('"result":')) return elapsedMs;
      throw new Error(`${method} was answered with ${status} ${start}`);
    },
    close() {
      client.close();
    },
  };
}

/** Runs `work` for every index below `count`, `callers` at a time. */
export function forEachOf(count: number, callers: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  return runCallers(callers, () => (next < count ? next++ : null), work);
}
