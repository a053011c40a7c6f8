/** Owns a client that costs as little as possible: kept connections, answers checked and dropped. */
import { Agent, request } from 'node:http';
import { performance } from 'node:perf_hooks';

/** Longest time for one answer. @unit ms */
const answerTimeoutMs = 600_000;

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
  const agent = new Agent({ keepAlive: true, maxSockets: connections, noDelay: true });
  const { hostname, port } = new URL(baseUrl);
  return {
    call: (method, params) =>
      new Promise((resolve, reject) => {
        const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
        const headers = { 'content-type': 'application/json', 'content-length': body.length };
        const startMs = performance.now();
        const sent = request({ agent, hostname, port, method: 'POST', path: `/rcp/${method}`, headers }, (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.on('error', reject);
          response.on('end', () => {
            const elapsedMs = performance.now() - startMs;
            const start = parts[0]?.toString('latin1', 0, 256) ?? '';
            if (response.statusCode === 200 && start.includes('"result":')) resolve(elapsedMs);
            else reject(new Error(`${method} was answered with ${response.statusCode ?? 0} ${start}`));
          });
        });
        sent.setTimeout(answerTimeoutMs, () => sent.destroy(new Error(`${method} got no answer in time`)));
        sent.on('error', reject);
        sent.end(body);
      }),
    close() {
      agent.destroy();
    },
  };
}

/** Runs `work` for every index below `count`, `callers` at a time. */
export async function forEachOf(
  count: number,
  callers: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const caller = async () => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
