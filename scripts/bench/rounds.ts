/** Owns the rounds: the bare loop and the server, one after the other, each in fresh processes. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { usableCores } from '../../src/device/cpu.ts';
import { startServed, type Served } from '../../test/support/served.ts';
import { startBareLoop } from './bare.ts';
import { createClient, forEachOf, type BenchClient } from './http-client.ts';
import { pingDuring } from './ping.ts';
import { cpuMsOf, processTree } from '../../src/bench/processes.ts';
import { benchCacheDir, type Workload } from './workload.ts';
import { median, quantile } from '../../src/bench/statistics.ts';

/** Callers of the throughput pass and of the load beside pings. */
export const callers = 16;
/** Documents that warm up caches before anything counts. */
const warmUpTexts = 60;
/** Calls after which V8 has compiled what a call runs through: the server costs what it will cost for weeks. */
const steadyAfterCalls = 3000;
/** Calls of the idle query in a round, and the pause before each. */
const idleCalls = 200;
const idlePauseMs = 10;

/** One way through the 400 documents. */
export interface Pass {
  readonly tokensPerSecond: number;
  /** Processor time of all processes of the loop or the server, none of the client's. @unit ms */
  readonly cpuMsPerThousandTokens: number;
  /** The part of it that is not the executors': serving, tokenising. @unit ms */
  readonly servingCpuMsPerThousandTokens: number;
  /** What the client itself takes from the same cores. @unit ms */
  readonly clientCpuMsPerThousandTokens: number;
}

/** What a round of the bare loop gave. */
export interface BareRound {
  readonly pass: Pass;
  readonly idleP50Ms: number;
}

/** What a round of the server gave. */
export interface ServedRound {
  /** As `single`, with the first calls after the start. */
  readonly first: Pass;
  readonly single: Pass;
  readonly list: Pass;
  readonly idleP50Ms: number;
  readonly pingP99Ms: number;
  readonly pingMaxMs: number;
}

/** Starts a server as it is by default, but for bounds that a slow machine must not hit. */
export function startBenchServer(nodeFlags: readonly string[] = []): Promise<Served> {
  const flags = ['--deadline-ms', '600000', '--run-timeout-ms', '60000'];
  return startServed({ flags, nodeFlags, environment: { TRIVEC_CACHE_DIR: benchCacheDir } });
}

interface SpentMs {
  readonly elapsed: number;
  /** Processor time. */
  readonly all: number;
  readonly serving: number;
  readonly client: number;
}

function passOf(tokens: number, spentMs: SpentMs): Pass {
  const perThousandTokens = 1000 / tokens;
  return {
    tokensPerSecond: (1000 * tokens) / spentMs.elapsed,
    cpuMsPerThousandTokens: spentMs.all * perThousandTokens,
    servingCpuMsPerThousandTokens: spentMs.serving * perThousandTokens,
    clientCpuMsPerThousandTokens: spentMs.client * perThousandTokens,
  };
}

/** The bare loop, fresh. */
export async function runBareRound(work: Workload): Promise<BareRound> {
  const loop = await startBareLoop(work.graphPath, work.outputName, usableCores());
  try {
    await loop.runAll(work.ids.slice(0, warmUpTexts));
    const { elapsedMs, cpuMs } = await loop.runAll(work.ids);
    const idle = await loop.runPaced(
      Array.from({ length: idleCalls }, () => work.shortQueryIds),
      idlePauseMs,
    );
    return {
      pass: passOf(work.tokens, { elapsed: elapsedMs, all: cpuMs, serving: 0, client: 0 }),
      idleP50Ms: median(idle.runMs),
    };
  } finally {
    loop.end();
  }
}

/** Every document in a call of its own. */
export function embedSingly(client: BenchClient, work: Workload): Promise<void> {
  return forEachOf(work.texts.length, callers, (index) =>
    client.call('embed', { inputs: [work.texts[index]], encoding: 'f32-base64' }),
  );
}

async function measurePass(served: Served, work: Workload, run: () => Promise<unknown>): Promise<Pass> {
  const pids = processTree(served.pid);
  const spentMs = (): SpentMs => ({
    elapsed: performance.now(),
    all: pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0),
    serving: cpuMsOf(served.pid),
    client: cpuMsOf(process.pid),
  });
  const before = spentMs();
  await run();
  const after = spentMs();
  return passOf(work.tokens, {
    elapsed: after.elapsed - before.elapsed,
    all: after.all - before.all,
    serving: after.serving - before.serving,
    client: after.client - before.client,
  });
}

/** The server, fresh. */
export async function runServedRound(work: Workload): Promise<ServedRound> {
  const served = await startBenchServer();
  const client = createClient(served.baseUrl, callers);
  try {
    await forEachOf(warmUpTexts, callers, (index) => client.call('embed', { inputs: [work.texts[index]] }));
    const first = await measurePass(served, work, () => embedSingly(client, work));
    await forEachOf(steadyAfterCalls, callers, (index) =>
      // The number keeps equal texts from sharing a run.
      client.call('embed', { inputs: [`${work.queries[index % work.queries.length] ?? ''} ${index}`], kind: 'query' }),
    );
    const single = await measurePass(served, work, () => embedSingly(client, work));
    const list = await measurePass(served, work, () =>
      client.call('embed', { inputs: work.texts, encoding: 'f32-base64' }),
    );
    const idleMs: number[] = [];
    for (let call = 0; call < idleCalls; call += 1) {
      await sleep(idlePauseMs);
      idleMs.push(await client.call('embed', { inputs: [work.shortQuery], kind: 'query', encoding: 'f32-base64' }));
    }
    const pingMs = await pingDuring(served.baseUrl, () => embedSingly(client, work));
    return {
      first,
      single,
      list,
      idleP50Ms: median(idleMs),
      pingP99Ms: quantile(pingMs, 0.99),
      pingMaxMs: Math.max(...pingMs),
    };
  } finally {
    client.close();
    await served.end();
  }
}
