/** Owns the command that compares the server with the bare loop: `npm run bench -- [--rounds 5] [--json FILE]`. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { cpuName, usableCores } from '../src/device/cpu.ts';
import { measureMemory } from './bench/memory.ts';
import { profileServer } from './bench/profile.ts';
import { runBareRound, runServedRound, type BareRound, type ServedRound } from './bench/rounds.ts';
import { median } from '../src/bench/statistics.ts';
import { formatTable } from '../src/bench/table.ts';
import { runBulkRound, type BulkRound } from './bench/bulk.ts';
import { passDocuments, prepareWorkload } from './bench/workload.ts';

const maxRounds = 20;

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    json: { type: 'string' },
    /** Profiles the serving process instead; the folder takes the profile. */
    profile: { type: 'string' },
    /** Compares `trivec embed` of the whole corpus instead. */
    bulk: { type: 'boolean', default: false },
    /** Requests of the last memory mark; 0 leaves memory out. */
    requests: { type: 'string', default: '10000' },
  },
});

/** What a measure is held to: `goal` is aimed at, beyond `must` the command fails. */
interface Bound {
  readonly goal: number;
  readonly must: number | null;
  readonly isLowerBetter: boolean;
}

interface Measure extends Bound {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly detail: string;
}

const atLeast = (goal: number, must: number | null): Bound => ({ goal, must, isLowerBetter: false });
const atMost = (goal: number, must: number | null): Bound => ({ goal, must, isLowerBetter: true });

function verdictOf({ value, goal, must, isLowerBetter }: Measure): 'goal' | 'must' | 'MISSED' {
  const isWithin = (bound: number) => (isLowerBetter ? value <= bound : value >= bound);
  if (isWithin(goal)) return 'goal';
  return must === null || !isWithin(must) ? 'MISSED' : 'must';
}

const progress = (text: string): void => void process.stderr.write(`${text}\n`);
const work = await prepareWorkload(flags.bulk ? Infinity : passDocuments);
progress(`${cpuName()}, ${usableCores()} cores; ${work.texts.length} documents, ${work.tokens} tokens`);

if (flags.profile !== undefined) {
  const costs = await profileServer(work, flags.profile);
  const rows = costs.map(({ place, selfMs, share }) => [place, selfMs.toFixed(0), `${(100 * share).toFixed(1)}%`]);
  process.stdout.write(`${formatTable(['function of the serving process', 'self ms', 'of busy time'], rows)}\n`);
} else {
  await (flags.bulk ? compareBulk() : compare());
}

async function compareBulk(): Promise<void> {
  const rounds: BulkRound[] = [];
  for (let round = 0; round < Math.min(maxRounds, Number(flags.rounds)); round += 1) {
    const found = await runBulkRound(work, round % 2 === 0);
    rounds.push(found);
    const [bare, command, whole] = [found.bare, found.command, found.wholeCommand].map((rate) => rate.toFixed(0));
    progress(`round ${round + 1}: bare ${bare}, embed ${command}, with its start ${whole} (tokens/s)`);
  }
  const measure = (name: string, bound: Bound, value: (round: BulkRound) => number): Measure => {
    const values = rounds.map(value);
    const detail = values.map((each) => each.toFixed(3)).join(', ');
    return { name, value: median(values), unit: '', ...bound, detail };
  };
  const count = work.texts.length;
  report([
    measure(
      `embed of ${count} documents: speed, command / bare`,
      atLeast(0.95, 0.85),
      (round) => round.command / round.bare,
    ),
    measure('the same with the start of the command', atLeast(0.85, null), (round) => round.wholeCommand / round.bare),
  ]);
}

async function compare(): Promise<void> {
  const rounds: { bare: BareRound; served: ServedRound }[] = [];
  for (let round = 0; round < Math.min(maxRounds, Number(flags.rounds)); round += 1) {
    // Who goes first changes, so that a machine that warms up or slows down favours neither.
    const isBareFirst = round % 2 === 0;
    const early = isBareFirst ? await runBareRound(work) : null;
    const served = await runServedRound(work);
    const bare = early ?? (await runBareRound(work));
    rounds.push({ bare, served });
    progress(
      `round ${round + 1}: bare ${bare.pass.tokensPerSecond.toFixed(0)}, ${served.single.tokensPerSecond.toFixed(0)} singly, ` +
        `${served.list.tokensPerSecond.toFixed(0)} as a list (tokens/s)`,
    );
  }
  const lastMark = Number(flags.requests);
  const memory = lastMark === 0 ? [] : await measureMemory(work, [0, Math.ceil(lastMark / 10), lastMark]);
  const measures = [...speedMeasures(rounds), ...memoryMeasures(memory)];
  report(measures);
  if (flags.json !== undefined) {
    const machine = { cpu: cpuName(), cores: usableCores(), node: process.version };
    const results = measures.map((measure) => ({ ...measure, verdict: verdictOf(measure) }));
    writeFileSync(
      flags.json,
      `${JSON.stringify({ machine, tokens: work.tokens, measures: results, rounds, memory }, null, 2)}\n`,
    );
  }
}

function report(measures: readonly Measure[]): void {
  const rows = measures.map((measure) => [
    measure.name,
    `${measure.value.toFixed(3)} ${measure.unit}`,
    `${measure.isLowerBetter ? '<=' : '>='} ${measure.goal}`,
    measure.must === null ? '' : `${measure.isLowerBetter ? '<=' : '>='} ${measure.must}`,
    verdictOf(measure),
    measure.detail,
  ]);
  process.stdout.write(`${formatTable(['measure', 'value', 'goal', 'must', 'verdict', 'detail'], rows)}\n`);
  if (measures.some((measure) => measure.must !== null && verdictOf(measure) === 'MISSED')) process.exitCode = 1;
}

function speedMeasures(rounds: readonly { bare: BareRound; served: ServedRound }[]): Measure[] {
  const middle = (value: (round: { bare: BareRound; served: ServedRound }) => number) => median(rounds.map(value));
  const throughput = (name: string, pick: 'first' | 'single' | 'list', must: number | null): Measure[] => {
    const detail =
      `${middle(({ served }) => served[pick].tokensPerSecond).toFixed(0)} of ` +
      `${middle(({ bare }) => bare.pass.tokensPerSecond).toFixed(0)} tokens/s`;
    const cpuDetail =
      `${middle(({ bare }) => bare.pass.cpuMsPerThousandTokens).toFixed(2)} of ` +
      `${middle(({ served }) => served[pick].cpuMsPerThousandTokens).toFixed(2)} CPU ms for 1,000 tokens, ` +
      `of which ${middle(({ served }) => served[pick].servingCpuMsPerThousandTokens).toFixed(2)} not in executors; the client took ` +
      middle(({ served }) => served[pick].clientCpuMsPerThousandTokens).toFixed(2);
    return [
      {
        name: `${name}: speed, server / bare`,
        value: middle(({ bare, served }) => served[pick].tokensPerSecond / bare.pass.tokensPerSecond),
        unit: '',
        ...atLeast(0.95, must),
        detail,
      },
      {
        name: `${name}: CPU time, bare / server`,
        value: middle(({ bare, served }) => bare.pass.cpuMsPerThousandTokens / served[pick].cpuMsPerThousandTokens),
        unit: '',
        ...atLeast(0.95, null),
        detail: cpuDetail,
      },
    ];
  };
  return [
    ...throughput('400 calls by 16 callers', 'single', 0.85),
    ...throughput('the first 400 calls by 16 callers', 'first', null),
    ...throughput('400 texts in one call', 'list', 0.85),
    {
      name: 'idle query: p50 of the call - p50 of its run',
      value: middle(({ bare, served }) => served.idleP50Ms - bare.idleP50Ms),
      unit: 'ms',
      ...atMost(1, 2),
      detail: `${middle(({ served }) => served.idleP50Ms).toFixed(2)} - ${middle(({ bare }) => bare.idleP50Ms).toFixed(2)} ms`,
    },
    {
      name: 'ping under load: p99',
      value: middle(({ served }) => served.pingP99Ms),
      unit: 'ms',
      ...atMost(10, null),
      detail: `longest ${Math.max(...rounds.map(({ served }) => served.pingMaxMs)).toFixed(1)} ms`,
    },
  ];
}

function memoryMeasures(memory: Awaited<ReturnType<typeof measureMemory>>): Measure[] {
  const [start, some, many] = memory;
  if (start === undefined || some === undefined || many === undefined) return [];
  const detail = [start, some, many]
    .map(({ requests, memory: { residentMegabytes, proportionalMegabytes } }) => {
      return `${requests}: ${residentMegabytes.toFixed(0)} (shared once: ${proportionalMegabytes.toFixed(0)})`;
    })
    .join(', ');
  return [
    { name: 'memory after the start', value: start.memory.residentMegabytes, unit: 'MB', ...atMost(600, 600), detail },
    {
      name: `memory after ${many.requests} / after ${some.requests} requests`,
      value: many.memory.residentMegabytes / some.memory.residentMegabytes,
      unit: '',
      ...atMost(1.15, 1.15),
      detail: '',
    },
  ];
}
