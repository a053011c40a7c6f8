/** Owns how a result reads: tables for a terminal, Markdown, and JSON. */
import type { Ratio } from './compare.ts';
import type { BenchPlan, SidePlan } from './plan.ts';
import type { BenchResult } from './run.ts';
import { hideKeys } from './side.ts';
import type { LoadSummary } from './summary.ts';
import { formatMarkdownTable, formatTable } from './table.ts';
import type { Table } from './table.ts';
import { failureTotal } from './tally.ts';

/** What a result was made on, and with. */
export interface ReportContext {
  readonly version: string;
  /** The words of the command line after `bench`. */
  readonly words: readonly string[];
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly platform: string;
    readonly node: string;
  };
}

const show = (value: number | null, digits: number): string =>
  value === null || !Number.isFinite(value) ? '-' : value.toFixed(digits);

/** Rows of all loads of all servers. */
const rowsOf = (result: BenchResult, cells: (load: LoadSummary) => string[]): string[][] =>
  result.summary.flatMap(({ side, loads }) => loads.map((load) => [side, load.load, ...cells(load)]));

function speedTable(result: BenchResult): Table {
  return {
    headings: [
      ...['server', 'load', 'texts/s', 'tokens/s', 'p50 ms', 'p90 ms', 'p99 ms', 'errors', 'refused', 'dropped'],
      ...['CPU s', 'CPU ms per 1,000 tokens'],
    ],
    rows: rowsOf(result, (load) => [
      show(load.textsPerSecond, 1),
      show(load.tokensPerSecond, 0),
      show(load.p50Ms, 2),
      show(load.p90Ms, 2),
      show(load.p99Ms, 2),
      String(failureTotal(load.failures)),
      String(load.refused),
      String(load.dropped),
      show(load.cpuSeconds, 2),
      show(load.cpuMsPerThousandTokens, 1),
    ]),
  };
}

/** What the servers count themselves; null where none does. */
function workTable(result: BenchResult): Table | null {
  const rows = rowsOf(result, ({ work }) =>
    work === null
      ? []
      : [
          show(work.paddingEfficiency, 3),
          show(work.inputsPerRun, 2),
          show(work.tokensPerRun, 0),
          show(work.runOverPredicted, 2),
          show(work.maxQueueSeconds, 2),
        ],
  ).filter((row) => row.length > 2);
  const headings = ['server', 'load', 'padding efficiency', 'texts per run', 'tokens per run', 'run / predicted time'];
  return rows.length === 0 ? null : { headings: [...headings, 'longest queue s'], rows };
}

const ratioRow = ({ name, isHigherBetter, median, min, max, perRound }: Ratio): string[] => [
  name,
  show(median, 2),
  show(min, 2),
  show(max, 2),
  isHigherBetter ? 'higher' : 'lower',
  String(perRound.length),
];

function ratioTable({ ratios }: BenchResult): Table | null {
  const headings = ['ratio', 'median', 'min', 'max', 'better is', 'rounds'];
  return ratios.length === 0 ? null : { headings, rows: ratios.map(ratioRow) };
}

function notesOf({ summary }: BenchResult): string[] {
  return summary.flatMap(({ side, loads }) =>
    loads.flatMap(({ load, failures, refused, refusalP50Ms, refusalP99Ms }) => [
      ...Object.entries(failures).map(
        ([reason, { count, example }]) => `${side}, ${load}: ${count} x ${reason}, such as: ${example}`,
      ),
      ...(refused === 0
        ? []
        : [`${side}, ${load}: refusals took ${show(refusalP50Ms, 2)} ms (p50), ${show(refusalP99Ms, 2)} ms (p99)`]),
    ]),
  );
}

/** How a plan sends its texts, in a sentence. */
export function describeLoad(plan: BenchPlan, { texts }: Pick<BenchResult, 'texts'>): string {
  const { mode, mix, callers, ratePerSecond, batch, passes, durationMs, rounds, seed } = plan;
  const count = mix === 'queries' ? `${texts.queries} queries` : `${texts.documents} documents`;
  const perCall = batch === null ? 'all in one call' : batch === 1 ? 'one a call' : `${batch} a call`;
  const pace = {
    closed: `closed loop of ${callers} callers`,
    open: `open loop, ${ratePerSecond} calls a second (Poisson, seed ${seed})`,
    list: 'one call after the other',
  }[mode];
  const beside = mix === 'both' ? `; queries at ${ratePerSecond} a second (Poisson, seed ${seed})` : '';
  const length = durationMs === null ? `${passes} pass${passes === 1 ? '' : 'es'}` : `${durationMs / 1000} s`;
  const order = plan.second === null ? '' : ', servers taking turns';
  return `${count}, ${perCall}, ${pace}${beside}; ${length} a round, ${rounds} round${rounds === 1 ? '' : 's'}${order}`;
}

const quote = (word: string): string => (/^[\w./:@%+=,-]+$/u.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** The command that makes the same result, without keys. */
export const commandOf = (words: readonly string[]): string =>
  ['node dist/main.js bench', ...hideKeys(words).map(quote)].join(' ');

function machineOf({ machine, version }: ReportContext): string {
  const { cpu, cores, platform, node } = machine;
  return `${cpu}, ${cores} core${cores === 1 ? '' : 's'}, ${platform}, Node ${node}, trivec ${version}`;
}

const tablesOf = (result: BenchResult): Table[] =>
  [speedTable(result), workTable(result), ratioTable(result)].filter((table) => table !== null);

/** The result as tables for a terminal. */
export function showReport(plan: BenchPlan, result: BenchResult, context: ReportContext): string {
  const about = [machineOf(context), ...result.sides.map(({ name, label }) => `${name}: ${label}`)];
  const tables = tablesOf(result).map(({ headings, rows }) => formatTable(headings, rows));
  const notes = notesOf(result);
  return [
    [...about, describeLoad(plan, result)].join('\n'),
    ...tables,
    ...(notes.length === 0 ? [] : [notes.join('\n')]),
  ].join('\n\n');
}

/** The result in Markdown, with the command that makes it. */
export function showMarkdown(plan: BenchPlan, result: BenchResult, context: ReportContext): string {
  const list = [...result.sides.map(({ name, label }) => `${name}: \`${label}\``), describeLoad(plan, result)];
  const notes = notesOf(result);
  return [
    `\`\`\`console\n$ ${commandOf(context.words)}\n\`\`\``,
    machineOf(context),
    list.map((line) => `- ${line}`).join('\n'),
    ...tablesOf(result).map(formatMarkdownTable),
    ...(notes.length === 0 ? [] : [notes.map((note) => `- ${note}`).join('\n')]),
  ].join('\n\n');
}

function withoutKey(side: SidePlan): SidePlan {
  const { server, apiKey } = side;
  return {
    ...side,
    apiKey: apiKey === null ? null : '(hidden)',
    server: server.kind === 'started' ? { ...server, flags: hideKeys(server.flags) } : server,
  };
}

/** The result for programs: machine, settings, every round, and what they amount to. */
export function reportJson(plan: BenchPlan, result: BenchResult, context: ReportContext): object {
  const { first, second } = plan;
  return {
    trivec: context.version,
    command: commandOf(context.words),
    machine: context.machine,
    settings: { ...plan, first: withoutKey(first), second: second === null ? null : withoutKey(second) },
    ...result,
  };
}
