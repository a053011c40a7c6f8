/** Owns the command `bench`. */
import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { BenchResult } from '../bench/run.ts';
import { mixNames, modeNames, planDefaults, readPlan, targetNames } from '../bench/plan.ts';
import { failureTotal } from '../bench/tally.ts';
import { systemClock } from '../clock.ts';
import { environment } from '../config/environment.ts';
import { cpuName, usableCores } from '../device/cpu.ts';
import type { Flags } from './command-settings.ts';
import { processEntries } from './entries.ts';
import { listenForInterruption } from './interruption.ts';

const targets = targetNames.join('|');

/** Flags and what they are for; the plan judges their values. */
const options: readonly (readonly [flag: string, description: string])[] = [
  [`--target <${targets}>`, 'what the server at URL speaks (default: rcp)'],
  ['--model <name>', 'model to ask for (default: what the server chooses or lists first)'],
  ['--api-key <text>', 'key to send as Authorization: Bearer'],
  ['--pid <number>', 'process of the server at URL, whose processor time is counted with all that it started'],
  ['--compare <url>', 'a second server, in rounds that alternate'],
  ['--compare-serve <flags>', 'or one that is started here with these flags, such as "--precision fp32"'],
  [`--compare-target <${targets}>`, 'what the server at --compare speaks (default: rcp)'],
  ['--compare-model <name>', 'model to ask the second server for'],
  ['--compare-api-key <text>', 'key for the second server'],
  ['--compare-pid <number>', 'process of the server at --compare'],
  ['--corpus <file>', 'documents, one a line, plain or JSON with a "text" (default: the bundled Cranfield abstracts)'],
  ['--queries <file>', 'queries, in the same form (default: the bundled Cranfield questions)'],
  [
    '--documents <number>',
    `how many documents, evenly spaced (default: ${planDefaults.documents} of the bundled ones, all of a file)`,
  ],
  ['--max-words <number>', 'cut every text to its first words'],
  [`--mode <${modeNames.join('|')}>`, 'callers that wait, calls that arrive, or all in one call (default: closed)'],
  ['--callers <number>', `callers of the closed loop (default: ${planDefaults.callers})`],
  [
    '--rate <number>',
    `calls a second of the open loop, or queries a second of --mix both (default: ${planDefaults.ratePerSecond})`,
  ],
  ['--max-in-flight <number>', `calls of an open loop beyond it are dropped (default: ${planDefaults.maxInFlight})`],
  ['--seed <number>', `seed of the arrivals (default: ${planDefaults.seed})`],
  ['--batch <number>', 'texts of a call (default: 1; for --mode list all)'],
  [`--mix <${mixNames.join('|')}>`, 'documents, queries, or documents with queries beside them (default: bulk)'],
  ['--passes <number>', `passes through the texts in a round (default: ${planDefaults.passes})`],
  ['--duration-s <number>', 'seconds of a load instead of passes'],
  ['--warm-up <number>', `calls before anything counts (default: ${planDefaults.warmUp})`],
  ['--rounds <number>', `rounds (default: ${planDefaults.rounds})`],
  ['--request-timeout-s <number>', `longest time for one answer (default: ${planDefaults.requestTimeoutS})`],
  ['--json <file>', 'write machine, settings, rounds and results as JSON'],
  ['--markdown', 'print Markdown, with the command that makes it'],
];

/** The words of the command line after `bench`, and how many of them stand behind `--`. */
function wordsOf(command: Command): { words: string[]; serveFlags: string[] } {
  // Commander keeps what it was given, but its types do not tell.
  const { rawArgs } = command.parent as unknown as { readonly rawArgs: readonly string[] };
  const words = rawArgs.slice(rawArgs.indexOf('bench') + 1);
  const cut = words.indexOf('--');
  return { words, serveFlags: cut === -1 ? [] : words.slice(cut + 1) };
}

/** What asks a benchmark to end; the last one comes when its terminal closes. */
const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

const isWhole = ({ summary }: BenchResult): boolean =>
  summary.every(({ loads }) => loads.every(({ failures, answered }) => failureTotal(failures) === 0 && answered > 0));

async function bench(flags: Flags, command: Command, version: string): Promise<void> {
  const { words, serveFlags } = wordsOf(command);
  // What follows `--` stands last; the dashes themselves are there where an unknown flag came before them.
  const operands = command.args.slice(0, command.args.length - serveFlags.length).filter((word) => word !== '--');
  const plan = readPlan(flags, { operands, serveFlags });
  // Loaded here: the other commands do not carry it.
  const { runBench } = await import('../bench/run.ts');
  const { BenchFailure } = await import('../bench/side.ts');
  const { reportJson, showMarkdown, showReport } = await import('../bench/report.ts');
  const interrupted = listenForInterruption(endingSignals, 1);
  try {
    const result = await runBench(plan, {
      entry: processEntries.main,
      launcher: processEntries.benchServer,
      variables: environment,
      signal: interrupted.signal,
      clock: systemClock,
      progress: (line) => process.stderr.write(`${line}\n`),
    });
    const machine = {
      cpu: cpuName(),
      cores: usableCores(),
      platform: `${process.platform} ${process.arch}`,
      node: process.version,
    };
    const context = { version, words, machine };
    const { json, markdown } = flags;
    if (typeof json === 'string')
      writeFileSync(json, `${JSON.stringify(reportJson(plan, result, context), null, 2)}\n`);
    process.stdout.write(`${(markdown === true ? showMarkdown : showReport)(plan, result, context)}\n`);
    if (!isWhole(result)) process.exitCode = 1;
  } catch (error) {
    if (!(error instanceof BenchFailure)) throw error;
    process.stderr.write(`trivec: ${error.message}\n`);
    process.exitCode = 1;
  } finally {
    interrupted.end();
  }
}

/** Adds `bench`. */
export function addBenchCommand(program: Command, version: string): void {
  const command = program
    .command('bench')
    .description('measure a server, or two in turns; without a URL one is started here, with the flags after --')
    .usage('[URL] [options] [-- flags of serve]')
    // Told together with every other problem.
    .allowUnknownOption()
    .allowExcessArguments()
    .action((flags: Flags, own: Command) => bench(flags, own, version));
  for (const [flag, description] of options) command.option(flag, description);
}
