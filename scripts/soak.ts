/**
 * Owns the command that wears a real server down for a while and looks what is left: `npm run soak [-- --minutes 3]`.
 * Server, executors and all callers share the processors of this machine: times say what a caller here would see.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundledTexts, readTexts } from '../src/bench/corpus.ts';
import { sumOf } from '../src/bench/server-metrics.ts';
import { createRandom } from '../src/bench/statistics.ts';
import { cpuName, usableCores } from '../src/device/cpu.ts';
import { executorPids, until } from '../test/support/executors.ts';
import { RpcError, startServed, type Served } from '../test/support/served.ts';
import { pick } from './fuzz/random.ts';
import { createCallMaker } from './soak/calls.ts';
import { atMost, formatChecks, none, type Check } from './soak/checks.ts';
import { checkIdleConnections, checkVanished } from './soak/crowd.ts';
import { checkDrain } from './soak/drain.ts';
import { filesIn, footprintOf, type Footprint } from './soak/footprint.ts';
import { createLedger } from './soak/ledger.ts';
import { checkOverload } from './soak/overload.ts';
import { checkSession } from './soak/session.ts';
import { runTraffic } from './soak/traffic.ts';

const maxMinutes = 600;
/** Deadline of the server: an overload is full and empty again soon, so that the command stays short. @unit ms */
const deadlineMs = 10_000;
/** Quiet before memory and handles are counted. @unit ms */
const settleMs = 4_000;
/** How often an executor is killed in the first quarter of the traffic. @unit ms */
const killEveryMs = 4_000;
/** Rounds of the largest calls before memory is read: each executor has then had what it will ever have at a time. */
const heavyRounds = 6;
const maxMemoryGrowth = 1.1;
/** Handles that may come and go between two counts. */
const spareHandles = 4;

const { values: flags } = parseArgs({
  options: { minutes: { type: 'string', default: '3' }, seed: { type: 'string', default: '1' } },
});
const minutes = Math.min(maxMinutes, Number(flags.minutes));
const seed = Number(flags.seed);
if (!(minutes > 0) || !Number.isInteger(seed)) throw new Error('--minutes and --seed must be numbers');
/** Of the whole time: a tenth for each of the windows of the overload and for stdio, the rest for traffic. */
const sessionMs = minutes * 6_000;
const trafficMs = minutes * 30_000;
/** Several deadlines long, so that what is answered within it does not hang on how it begins. @unit ms */
const windowMs = Math.max(3 * deadlineMs, minutes * 6_000);

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const random = createRandom(seed);
const entry = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const maxHandles = Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim()) || Infinity;

const folder = mkdtempSync(join(tmpdir(), 'trivec-soak-'));
const [cacheDir, temporaryDir] = ['cache', 'tmp'].map((name) => join(folder, name)) as [string, string];
for (const path of [cacheDir, temporaryDir]) mkdirSync(path);
const environment = { TRIVEC_CACHE_DIR: cacheDir, TMPDIR: temporaryDir };

/** Settles the server after its largest calls and says what it holds. */
async function mark(server: Served): Promise<Footprint> {
  const calls = createCallMaker(random);
  for (let round = 0; round < heavyRounds; round += 1) {
    // One after the other: none of them is refused, and what is over its deadline has run all the same.
    for (const { method, params } of calls.heavy()) await server.call(method, params).catch(ignoreRefusal);
  }
  await wait(settleMs);
  return footprintOf(server.pid, [cacheDir, temporaryDir]);
}

/** Throws again what is no answer of the server. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof RpcError)) throw error;
}

/** Kills executors until it is over. */
async function killExecutors(server: Served, isOver: () => boolean): Promise<number> {
  let kills = 0;
  while (!isOver()) {
    const pids = executorPids(server.pid);
    if (pids.length > 0) {
      process.kill(pick(random, pids), 'SIGKILL');
      kills += 1;
    }
    await wait(killEveryMs);
  }
  return kills;
}

const inWords = ({ megabytes, serverMegabytes }: Footprint): string =>
  `${megabytes.toFixed(0)} MB, ${serverMegabytes.toFixed(0)} of them the server's`;

const isReady = (server: Served) => async () => (await fetch(`${server.baseUrl}/health/ready`)).status === 200;

async function soak(server: Served): Promise<Check[]> {
  const ledger = createLedger();
  const traffic = async (timeMs: number) => {
    const endMs = performance.now() + timeMs;
    const isOver = () => performance.now() > endMs;
    const running = runTraffic({ baseUrl: server.baseUrl, random, ledger, isOver });
    return { running, isOver };
  };
  // Executors die in the first quarter only: a young one holds less memory than an old one, and would hide a leak.
  const first = await traffic(trafficMs / 4);
  const kills = await killExecutors(server, first.isOver);
  await first.running;
  await until('ready after the kills', isReady(server), 60_000);
  const before = await mark(server);
  say(`first quarter: ${JSON.stringify(ledger.counts)}, ${kills} kills, ${inWords(before)}`);
  await (
    await traffic((trafficMs * 3) / 4)
  ).running;
  const after = await mark(server);
  say(`end: ${JSON.stringify(ledger.counts)}, ${inWords(after)}`);
  const metrics = await (await fetch(`${server.baseUrl}/metrics`)).text();
  const left = ['trivec_queued_inputs', 'trivec_queued_tokens', 'trivec_running_inputs'].filter(
    (name) => sumOf(metrics, name) !== 0,
  );
  const { sent, results, errors, retryable } = ledger.counts;
  return [
    none(
      `faults in the answers to ${sent} calls (${results} results, ${errors} errors, ${retryable} to be tried again)`,
      ledger.faults,
    ),
    none('calls that were not answered', ledger.openIds()),
    atMost(
      `memory of all processes, end / first quarter (${inWords(before)})`,
      after.megabytes / before.megabytes,
      maxMemoryGrowth,
      '',
    ),
    atMost('open handles more than after the first quarter', after.handles - before.handles, spareHandles, ''),
    atMost('processes more than after the first quarter', after.processes - before.processes, 0, ''),
    none(
      'files that came',
      after.files.filter((file) => !before.files.includes(file)),
    ),
    none('gauges of waiting and running work that are not 0', left),
  ];
}

const checks: Check[] = [];
const texts = readTexts(bundledTexts.documents);
try {
  say(`${cpuName()}, ${usableCores()} cores for server, executors and callers; ${minutes} minutes, seed ${seed}`);
  const server = await startServed({ flags: ['--deadline-ms', String(deadlineMs)], environment });
  try {
    checks.push(...(await checkOverload({ baseUrl: server.baseUrl, random, windowMs })));
    say('overload done');
    for (const count of [2_000, 10_000]) checks.push(await checkIdleConnections(server.baseUrl, count, maxHandles));
    checks.push(await checkVanished(server.baseUrl, texts.slice(0, 48)));
    say('crowds done');
    checks.push(...(await soak(server)), ...(await checkDrain(server, texts)));
  } finally {
    await server.end();
  }
  checks.push(none('files in the folder for temporary files after the end', filesIn([temporaryDir])));
  const endMs = performance.now() + sessionMs;
  const variables = { PATH: process.env['PATH'], ...environment };
  checks.push(...(await checkSession({ entry, variables, seed, isOver: () => performance.now() > endMs })));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`${formatChecks(checks)}\n`);
if (checks.some(({ isMet }) => isMet === false)) process.exitCode = 1;
