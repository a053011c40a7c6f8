/** Owns the memory of a server before and after requests of random shapes. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readDocuments } from '../../test/support/corpus.ts';
import { createClient, forEachOf } from '../bench/http-client.ts';
import { processTree } from '../../src/bench/processes.ts';
import { memoryOf } from '../bench/process-memory.ts';
import { createRandomRequests } from '../bench/workload.ts';
import type { TimeBudget } from './budget.ts';

const requestCount = 300;
const callers = 8;
const smiTimeoutMs = 10_000;

/** Memory at one moment. */
interface MemoryNow {
  /** Of all processes of the server. @unit MB */
  readonly residentMegabytes: number;
  /** In use on all GPUs, by whomever; null where nvidia-smi does not tell. @unit MiB */
  readonly gpuMebibytes: number | null;
}

/** Memory before and after. */
export interface MemoryGrowth {
  readonly before: MemoryNow;
  readonly after: MemoryNow;
  readonly requests: number;
  readonly wantedRequests: number;
}

/** The sum over what `nvidia-smi` prints, a line for each GPU; null where a line is no number. */
export function sumOfLines(output: string): number | null {
  const sum = output
    .trim()
    .split('\n')
    .reduce((total, line) => total + (line.trim() === '' ? Number.NaN : Number(line)), 0);
  return Number.isFinite(sum) ? sum : null;
}

async function gpuMebibytes(): Promise<number | null> {
  try {
    const flags = ['--query-gpu=memory.used', '--format=csv,noheader,nounits'];
    return sumOfLines((await promisify(execFile)('nvidia-smi', flags, { timeout: smiTimeoutMs })).stdout);
  } catch {
    return null;
  }
}

async function memoryNow(pid: number, isOnCuda: boolean): Promise<MemoryNow> {
  const { residentMegabytes } = memoryOf(processTree(pid));
  return { residentMegabytes, gpuMebibytes: isOnCuda ? await gpuMebibytes() : null };
}

/** Memory around as many of the requests as fit into the time; `methods` are those that the server offers. */
export async function measureGrowth(
  { baseUrl, pid }: { readonly baseUrl: string; readonly pid: number },
  isOnCuda: boolean,
  methods: ReadonlySet<string>,
  budget: TimeBudget,
): Promise<MemoryGrowth> {
  const client = createClient(baseUrl, callers);
  const next = createRandomRequests(readDocuments().flatMap(({ text }) => (text === '' ? [] : [text])));
  const requests = Array.from({ length: requestCount }, (_, index) => next(index)).filter(({ method }) =>
    methods.has(method),
  );
  const before = await memoryNow(pid, isOnCuda);
  let done = 0;
  try {
    await forEachOf(requests.length, callers, async (index) => {
      const request = requests[index];
      if (request === undefined || budget.remainingMs() === 0) return;
      await client.call(request.method, request.params);
      done += 1;
    });
  } finally {
    client.close();
  }
  return { before, after: await memoryNow(pid, isOnCuda), requests: done, wantedRequests: requests.length };
}
