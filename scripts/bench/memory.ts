/** Owns the memory of a server over its life: after the start, after some requests, after many. */
import { createClient, forEachOf } from './http-client.ts';
import { processTree } from '../../src/bench/processes.ts';
import { memoryOf, type ProcessMemory } from './process-memory.ts';
import { callers, startBenchServer } from './rounds.ts';
import { createRandomRequests, type Workload } from './workload.ts';

/** Memory of all processes of the server together. */
export interface MemoryAfter {
  readonly requests: number;
  readonly memory: ProcessMemory;
}

/** Memory after each number of requests in `marks`, which ascend. */
export async function measureMemory(work: Workload, marks: readonly number[]): Promise<MemoryAfter[]> {
  const served = await startBenchServer();
  const client = createClient(served.baseUrl, callers);
  const nextRequest = createRandomRequests(work.texts);
  const measured: MemoryAfter[] = [];
  let done = 0;
  try {
    for (const requests of marks) {
      const first = done;
      await forEachOf(requests - first, callers, (offset) => {
        const { method, params } = nextRequest(first + offset);
        return client.call(method, params);
      });
      done = requests;
      measured.push({ requests, memory: memoryOf(processTree(served.pid)) });
    }
    return measured;
  } finally {
    client.close();
    await served.end();
  }
}
