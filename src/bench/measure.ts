/** Owns measuring a server while a load runs: time, processor time, and what the server counts itself. */
import type { Clock } from '../clock.ts';
import { treeCpuMs } from './processes.ts';
import { workBetween } from './server-metrics.ts';
import type { MetricsSample, ServerWork } from './server-metrics.ts';
import type { Side } from './side.ts';

/** How often the queue of a server is looked at. @unit ms */
const lookEveryMs = 250;

/** What a load cost. */
export interface Cost {
  /** @unit ms */
  readonly elapsedMs: number;
  /** Processor time of the server and all that it started; null where nobody tells. @unit ms */
  readonly cpuMs: number | null;
  /** Processor time of this process. @unit ms */
  readonly clientCpuMs: number;
  readonly work: ServerWork | null;
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Looks at the queue until it is told to stop, which gives what was seen. */
function watchQueue(side: Pick<Side, 'sample'>, clock: Clock): () => Promise<number[]> {
  const seen: number[] = [];
  let isOver = false;
  let cancel = (): void => undefined;
  let look: Promise<void> = Promise.resolve();
  const schedule = () => {
    cancel = clock.after(lookEveryMs, () => {
      look = side.sample().then((sample) => {
        if (typeof sample?.queueSeconds === 'number') seen.push(sample.queueSeconds);
        if (!isOver) schedule();
      });
    });
  };
  schedule();
  return async () => {
    isOver = true;
    cancel();
    await look;
    return seen;
  };
}

/** Runs a load and gives what it cost. */
export async function measure(
  side: Pick<Side, 'sample' | 'pid'>,
  clock: Clock,
  load: () => Promise<void>,
): Promise<Cost> {
  const spentMs = () => (side.pid === null ? null : treeCpuMs(side.pid));
  const before = await side.sample();
  const endWatch = before === null ? null : watchQueue(side, clock);
  const startCpuMs = spentMs();
  const startClientMs = ownCpuMs();
  const startMs = clock.nowMs();
  let elapsedMs: number;
  let queueSeconds: number[] = [];
  try {
    await load();
    elapsedMs = clock.nowMs() - startMs;
  } finally {
    queueSeconds = (await endWatch?.()) ?? [];
  }
  const endCpuMs = spentMs();
  const clientCpuMs = ownCpuMs() - startClientMs;
  const after = await side.sample();
  return {
    elapsedMs,
    cpuMs: startCpuMs === null || endCpuMs === null ? null : endCpuMs - startCpuMs,
    clientCpuMs,
    work: workOf(before, after, queueSeconds),
  };
}

const workOf = (before: MetricsSample | null, after: MetricsSample | null, queue: readonly number[]) =>
  before === null || after === null ? null : workBetween(before, after, queue);
