/** Owns profiling the serving process under the load of the throughput pass. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from './http-client.ts';
import { callers, embedSingly, startBenchServer } from './rounds.ts';
import type { Workload } from './workload.ts';

/** Passes through the documents while the profiler samples. */
const passes = 3;
const topCount = 25;

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** One function and its share of the time in which the process did not idle. */
export interface Cost {
  readonly place: string;
  readonly selfMs: number;
  readonly share: number;
}

/** The functions that took most, by their own time; the profile stays in `folder` for a browser to read. */
export async function profileServer(work: Workload, folder: string): Promise<Cost[]> {
  mkdirSync(folder, { recursive: true });
  const known = new Set(readdirSync(folder));
  const served = await startBenchServer(['--cpu-prof', `--cpu-prof-dir=${folder}`]);
  const client = createClient(served.baseUrl, callers);
  try {
    for (let pass = 0; pass < passes; pass += 1) await embedSingly(client, work);
  } finally {
    client.close();
    await served.end();
  }
  const name = readdirSync(folder).find((file) => file.endsWith('.cpuprofile') && !known.has(file));
  if (name === undefined) throw new Error('the server left no profile');
  return topCosts(JSON.parse(readFileSync(join(folder, name), 'utf8')) as CpuProfile);
}

function topCosts({ nodes, samples, timeDeltas }: CpuProfile): Cost[] {
  const places = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => [
      id,
      `${functionName === '' ? '(anonymous)' : functionName} ${shorten(url)}${url === '' ? '' : `:${lineNumber + 1}`}`.trim(),
    ]),
  );
  const selfMs = new Map<string, number>();
  for (const [index, id] of samples.entries()) {
    const place = places.get(id) ?? '';
    if (place === '(idle)') continue;
    selfMs.set(place, (selfMs.get(place) ?? 0) + (timeDeltas[index] ?? 0) / 1000);
  }
  const total = [...selfMs.values()].reduce((sum, value) => sum + value, 0);
  const costs = [...selfMs].map(([place, ms]) => ({ place, selfMs: ms, share: ms / total }));
  return costs.sort((a, b) => b.selfMs - a.selfMs).slice(0, topCount);
}

const shorten = (url: string): string => url.replace(/^file:\/\//u, '').replace(/^.*\/(dist|node_modules)\//u, '$1/');
