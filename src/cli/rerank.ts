/** Owns the command `rerank`. */
import type { Command } from 'commander';
import type { InputKind } from '../bulk/read/inputs.ts';
import type { Flags } from './command-settings.ts';
import { addEngineFlags, addServerFlags, apiKeyOf, engineSettings, mixedProblems } from './job-flags.ts';
import { ConfigurationError } from '../errors.ts';
import { print } from './stdout.ts';

/** A passage with its place in the input. */
interface Passage {
  readonly text: string;
  /** Line of the input, counted from 1. */
  readonly line: number;
}

/** What a terminal or another program takes for the end of a line. */
const lineEnds = /[\r\n\v\f\u0085\u2028\u2029]+/gu;
/** Most passages that are kept to be put in order. */
const maxPassages = 1_000_000;
/** Passages of one call. */
const passagesPerCall = 256;

/** One score for each passage, higher is better. */
type Score = (query: string, passages: readonly string[]) => Promise<readonly number[]>;

async function rerank(input: string, flags: Flags, version: string): Promise<void> {
  const { query, top } = flags;
  const problems: string[] = [];
  if (typeof query !== 'string' || query === '') problems.push('--query must be given');
  const most = top === undefined ? Infinity : Number(top);
  if (top !== undefined && (!Number.isSafeInteger(most) || most < 1)) {
    problems.push(`--top must be a whole number above 0, not ${JSON.stringify(top)}`);
  }
  if (flags['url'] !== undefined) problems.push(...mixedProblems(flags));
  if (problems.length > 0) throw new ConfigurationError(problems);
  // Loaded here: the other commands do not carry it.
  const { telling } = await import('./failures.ts');
  await telling(async () => {
    const passages = await readPassages(input, flags);
    const scorer = await openScorer(flags, version);
    try {
      const texts = passages.map(({ text }) => text);
      const scores = await scorer.score(String(query), texts);
      await print(linesOf(passages, scores, { most, isJson: flags['json'] === true }).join('\n'));
    } finally {
      await scorer.close();
    }
  });
}

async function readPassages(input: string, flags: Flags): Promise<Passage[]> {
  const { findInputs, inputKinds } = await import('../bulk/read/inputs.ts');
  const { readRows } = await import('../bulk/read/rows.ts');
  const { BulkFailure } = await import('../bulk/row.ts');
  const { format, field } = flags;
  const kind = inputKinds.find((one) => one === format) ?? null;
  if (format !== undefined && kind === null) {
    throw new ConfigurationError([`--format must be one of ${inputKinds.join(', ')}, not ${JSON.stringify(format)}`]);
  }
  const usual: InputKind | null = input === '-' ? 'text' : null;
  const files = await findInputs(input, kind ?? usual);
  const passages: Passage[] = [];
  const fields = { text: typeof field === 'string' ? field : 'text', id: null };
  for await (const { file, rows } of readRows(files, { file: 0, offset: 0, line: 0 }, fields)) {
    for (const { text, line, reason } of rows) {
      if (text === null) throw new BulkFailure(`${files[file]?.name ?? ''}:${String(line)}: ${reason ?? ''}`);
      passages.push({ text, line });
    }
    if (passages.length > maxPassages) throw new BulkFailure(`more than ${String(maxPassages)} passages`);
  }
  if (passages.length === 0) throw new BulkFailure(`${input} holds no passage`);
  return passages;
}

async function openScorer(flags: Flags, version: string): Promise<{ score: Score; close(): Promise<unknown> }> {
  const { url } = flags;
  const model = typeof flags['model'] === 'string' ? flags['model'] : null;
  if (typeof url === 'string') {
    const { connectTo } = await import('./server-client.ts');
    const client = await connectTo(url, apiKeyOf(flags));
    const options = model === null ? {} : { model };
    return {
      score: async (query, passages) => (await client.rerank(query, passages, options)).scores,
      close: () => client.close(),
    };
  }
  const { jobSettings, openService } = await import('./embedded-source.ts');
  const open = await openService(jobSettings(engineSettings(flags), 'rerank'), version);
  const context = { transport: 'stdio', signal: new AbortController().signal, requestId: 'rerank' } as const;
  const base = { method: 'rerank', model, rerankMethod: null, truncation: null, lane: 'bulk' } as const;
  const score: Score = async (query, passages) => {
    const scores: number[] = [];
    for (let start = 0; start < passages.length; start += passagesPerCall) {
      const values = passages.slice(start, start + passagesPerCall);
      const answer = await open.service.run({ ...base, query, passages: { values, field: 'passages' } }, context);
      scores.push(...answer.scores);
    }
    return scores;
  };
  return { score, close: () => open.close() };
}

/** The passages in order; each is one line, whatever it holds. */
function linesOf(
  passages: readonly Passage[],
  scores: readonly number[],
  { most, isJson }: { readonly most: number; readonly isJson: boolean },
): string[] {
  const scoreOf = (index: number): number => scores[index] ?? -Infinity;
  const order = passages.map((_, index) => index).sort((a, b) => scoreOf(b) - scoreOf(a) || a - b);
  return order.slice(0, most).map((index) => {
    const { text, line } = passages[index] as Passage;
    const score = scoreOf(index);
    return isJson
      ? JSON.stringify({ index, line, score, text })
      : `${score.toFixed(6)}\t${text.replaceAll(lineEnds, ' ')}`;
  });
}

/** Adds `rerank`. */
export function addRerankCommand(program: Command, version: string): void {
  const command = program
    .command('rerank')
    .description('put passages in the order in which they answer a query, best first')
    .argument('[input]', 'a file of passages as for embed, or - for stdin', '-')
    .requiredOption('--query <text>', 'what is looked for')
    .option('--top <number>', 'print the best ones only')
    .option('--field <name>', 'field or column that holds the passage (default: text)')
    .option(
      '--format <jsonl|csv|tsv|parquet|text>',
      'what the input is (default: by the end of its name; of stdin, text)',
    )
    .option('--model <name>', 'model, where several are served (default: the first one)')
    .option('--json', 'print JSON lines with index, line, score and text')
    .action((input: string, flags: Flags) => rerank(input, flags, version));
  addServerFlags(command, false);
  addEngineFlags(command);
}
