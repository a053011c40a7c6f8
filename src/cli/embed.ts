/** Owns the command `embed`. */
import type { Command } from 'commander';
import type { BulkResult } from '../bulk/embed.ts';
import type { VectorSource } from '../bulk/source/source.ts';
import type { Flags } from './command-settings.ts';
import type { EmbedPlan } from './embed-plan.ts';
import { listenForInterruption } from './interruption.ts';
import { addEngineFlags, addServerFlags, apiKeyOf, engineSettings } from './job-flags.ts';
import type { BulkProgress } from './bulk-progress.ts';

/** What the shell sees after Ctrl-C. */
const interruptedExitCode = 130;

/** Longest time for one answer of a server. @unit ms */
const answerTimeoutMs = 600_000;
/** Longest time until a server has said what it serves, or that it is still there. @unit ms */
const silenceMs = 10_000;

async function embed(input: string, flags: Flags, version: string): Promise<void> {
  // Loaded here: the other commands do not carry it.
  const { telling } = await import('./failures.ts');
  await telling(() => run(input, flags, version));
}

async function run(input: string, flags: Flags, version: string): Promise<void> {
  const { readEmbedPlan } = await import('./embed-plan.ts');
  const plan = await readEmbedPlan(input, flags);
  const { runBulk } = await import('../bulk/embed.ts');
  const { openBulkProgress } = await import('./bulk-progress.ts');
  const totalBytes = plan.files.reduce((sum, { bytes }) => sum + bytes, 0);
  const progress = await openBulkProgress(totalBytes, plan.isQuiet);
  const interrupted = listenForInterruption(['SIGINT', 'SIGTERM'], interruptedExitCode);
  let source: VectorSource | null = null;
  try {
    source = await openSource(plan, flags, version, { progress, signal: interrupted.signal });
    const result = await runBulk(plan, source, progress, interrupted.signal);
    progress.end();
    if (!plan.isQuiet) progress.note(describeResult(plan, result, progress));
  } catch (error) {
    progress.end();
    if (!interrupted.signal.aborted) throw error;
    const goOn = plan.out === '-' ? '' : '; the same command goes on where it stopped';
    process.stderr.write(`trivec: interrupted${goOn}\n`);
    process.exitCode = interruptedExitCode;
  } finally {
    await source?.close();
    interrupted.end();
    // Reading it would keep the process.
    if (input === '-') process.stdin.destroy();
  }
}

async function openSource(
  plan: EmbedPlan,
  flags: Flags,
  version: string,
  { progress, signal }: { readonly progress: BulkProgress; readonly signal: AbortSignal },
): Promise<VectorSource> {
  const { urls, wish, patienceMs } = plan;
  if (urls.length > 0) {
    const { openServers } = await import('../bulk/source/servers.ts');
    const onNote = (line: string): void => {
      progress.note(line);
    };
    return openServers({ urls, wish, patienceMs, apiKey: apiKeyOf(flags), answerTimeoutMs, silenceMs, onNote }, signal);
  }
  const { jobSettings, openEmbedded } = await import('./embedded-source.ts');
  const source = await openEmbedded(jobSettings(engineSettings(flags), wish.method), wish, version);
  const { keepHeapSmall } = await import('./garbage.ts');
  keepHeapSmall();
  return source;
}

function describeResult({ out }: EmbedPlan, { wasDone, rows, badRows }: BulkResult, progress: BulkProgress): string {
  const skipped = badRows === 0 ? '' : `, ${String(badRows)} left out${out === '-' ? '' : `: ${out}.skipped.jsonl`}`;
  if (wasDone) return `${out} is whole already: ${String(rows)} rows${skipped}; --restart makes it anew`;
  const { rows: here, tokens, seconds } = progress.summary();
  if (here === 0) return `${out === '-' ? 'stdout' : out}: ${String(rows)} rows${skipped}`;
  const rate = `${(here / seconds).toFixed(1)} texts/s, ${(tokens / seconds).toFixed(0)} tokens/s`;
  return `${out === '-' ? 'stdout' : out}: ${String(rows)} rows${skipped}; ${String(here)} of them now in ${seconds.toFixed(1)} s, ${rate}`;
}

const options: readonly (readonly [flag: string, description: string])[] = [
  ['--method <dense|sparse|multi>', 'vectors to make (default: dense)'],
  ['--field <name>', 'field or column that holds the text (default: text)'],
  ['--id-field <name>', 'field or column that names a row in the output, beside its number'],
  ['--kind <document|query>', 'what the texts are to each other (default: document)'],
  [
    '--out <file>',
    'output, ending in .jsonl, .npy, .parquet or .arrow; - is JSON lines on stdout (default: name of the input, .vectors.jsonl, here)',
  ],
  ['--format <jsonl|csv|tsv|parquet|text>', 'what the input is (default: by the end of its name; of stdin, jsonl)'],
  ['--model <name>', 'model, where several are served (default: the first one)'],
  ['--dimensions <number>', 'cut dense vectors to so many, for models that are made for it'],
  ['--output <float32|int8|uint8|binary|ubinary>', 'form of the numbers (default: float32)'],
  ['--skip-bad', 'leave rows out that hold no text, and list them beside the output, instead of ending at the first'],
  ['--restart', 'begin anew, whatever is there'],
  [
    '--give-up-after <seconds>',
    'longest time in which servers fail or turn calls away, and none answers (default: 300)',
  ],
  ['--quiet', 'say nothing but errors and rows that are left out'],
];

/** Adds `embed`. */
export function addEmbedCommand(program: Command, version: string): void {
  const command = program
    .command('embed')
    .description(
      'make vectors of every text of a file, of the files below a folder, or of stdin; ' +
        'a run that ended early, however, is gone on with by the same command',
    )
    .argument('<input>', 'a .jsonl, .csv, .tsv, .parquet or .txt file, a folder of them, or - for stdin')
    .action((input: string, flags: Flags) => embed(input, flags, version));
  for (const [flag, description] of options) command.option(flag, description);
  addServerFlags(command, true);
  addEngineFlags(command);
}
