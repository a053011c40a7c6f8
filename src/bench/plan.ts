/** Owns what a benchmark is asked to do: flags to a plan, or every reason why not. */
import { ConfigurationError } from '../errors.ts';
import { createFlagReader, flagName, splitWords } from './flag-reader.ts';
import type { FlagReader } from './flag-reader.ts';

/** Kinds of servers that can be asked. */
export const targetNames = ['rcp', 'tei', 'openai'] as const;
/** Name of a kind of server. */
export type TargetName = (typeof targetNames)[number];
/** How calls follow each other. */
export const modeNames = ['closed', 'open', 'list'] as const;
/** What is sent. */
export const mixNames = ['bulk', 'queries', 'both'] as const;

/** One server of a benchmark: one that runs, or one to be started with these flags. */
export interface SidePlan {
  readonly server:
    | { readonly kind: 'running'; readonly url: string; readonly pid: number | null }
    | { readonly kind: 'started'; readonly flags: readonly string[] };
  readonly target: TargetName;
  readonly model: string | null;
  readonly apiKey: string | null;
}

/** Everything that decides what a benchmark does. */
export interface BenchPlan {
  readonly first: SidePlan;
  readonly second: SidePlan | null;
  readonly mode: (typeof modeNames)[number];
  readonly mix: (typeof mixNames)[number];
  readonly callers: number;
  /** Calls a second of the open loop, and of the queries of the mix `both`. */
  readonly ratePerSecond: number;
  readonly maxInFlight: number;
  readonly seed: number;
  /** Texts of a call; null sends all of them in one. */
  readonly batch: number | null;
  readonly documents: number | null;
  readonly maxWords: number | null;
  readonly passes: number;
  /** Ends a load instead of the passes. @unit ms */
  readonly durationMs: number | null;
  readonly warmUp: number;
  readonly rounds: number;
  /** @unit ms */
  readonly requestTimeoutMs: number;
  readonly corpus: string | null;
  readonly queries: string | null;
}

const bounds = {
  callers: { min: 1, max: 1024 },
  rate: { min: 0.01, max: 100_000, isWhole: false },
  maxInFlight: { min: 1, max: 10_000 },
  seed: { min: 0, max: 4_294_967_295 },
  batch: { min: 1, max: 100_000 },
  documents: { min: 1, max: 10_000_000 },
  maxWords: { min: 1, max: 1_000_000 },
  passes: { min: 1, max: 10_000 },
  durationS: { min: 0.1, max: 3600, isWhole: false },
  warmUp: { min: 0, max: 100_000 },
  rounds: { min: 1, max: 100 },
  requestTimeoutS: { min: 1, max: 3600, isWhole: false },
  pid: { min: 1, max: 4_194_304 },
};

/** Values where a flag is not given. */
export const planDefaults = {
  callers: 16,
  ratePerSecond: 20,
  maxInFlight: 256,
  seed: 1,
  /** Documents of the bundled corpus. */
  documents: 400,
  passes: 1,
  warmUp: 32,
  rounds: 3,
  requestTimeoutS: 120,
} as const;

/** Words of the command line beside its flags. */
export interface PlanWords {
  /** Words that no flag has taken. */
  readonly operands: readonly string[];
  /** Those after `--`. */
  readonly serveFlags: readonly string[];
}

/**
 * The plan that flags and words amount to.
 * @throws ConfigurationError with every problem at once
 */
export function readPlan(flags: Readonly<Record<string, unknown>>, words: PlanWords): BenchPlan {
  const reader = createFlagReader(flags);
  const [url = null, ...surplus] = words.operands.filter((word) => !word.startsWith('-'));
  const unknown = [...surplus, ...words.operands.filter((word) => word.startsWith('-'))];
  for (const word of unknown) reader.refuse(`unknown argument ${word}; see --help`);
  const number = (key: keyof typeof bounds) => reader.number(key, bounds[key]);
  const mode = reader.choice('mode', modeNames) ?? 'closed';
  const mix = reader.choice('mix', mixNames) ?? 'bulk';
  const durationS = number('durationS');
  const corpus = reader.text('corpus');
  const plan: BenchPlan = {
    first: readFirst(reader, url, words.serveFlags),
    second: readSecond(reader),
    mode,
    mix,
    callers: number('callers') ?? planDefaults.callers,
    ratePerSecond: number('rate') ?? planDefaults.ratePerSecond,
    maxInFlight: number('maxInFlight') ?? planDefaults.maxInFlight,
    seed: number('seed') ?? planDefaults.seed,
    batch: number('batch') ?? (mode === 'list' ? null : 1),
    documents: number('documents') ?? (corpus === null ? planDefaults.documents : null),
    maxWords: number('maxWords'),
    passes: number('passes') ?? planDefaults.passes,
    durationMs: durationS === null ? null : durationS * 1000,
    warmUp: number('warmUp') ?? planDefaults.warmUp,
    rounds: number('rounds') ?? planDefaults.rounds,
    requestTimeoutMs: (number('requestTimeoutS') ?? planDefaults.requestTimeoutS) * 1000,
    corpus,
    queries: reader.text('queries'),
  };
  refuseContradictions(reader, plan);
  if (reader.problems.length > 0) throw new ConfigurationError(reader.problems);
  return plan;
}

function readFirst(reader: FlagReader, url: string | null, serveFlags: readonly string[]): SidePlan {
  const target = reader.choice('target', targetNames) ?? 'rcp';
  const pid = reader.number('pid', bounds.pid);
  const own = { target, model: reader.text('model'), apiKey: reader.text('apiKey') };
  if (url !== null) {
    checkUrl(reader, 'the URL', url);
    if (serveFlags.length > 0) reader.refuse('flags after -- are for a server that is started here: leave the URL out');
    return { ...own, server: { kind: 'running', url, pid } };
  }
  if (target !== 'rcp') reader.refuse(`--target ${target} needs a URL: a server that is started here speaks rcp`);
  if (pid !== null) reader.refuse('--pid needs a URL: the process of a server that is started here is known');
  return { ...own, server: { kind: 'started', flags: serveFlags } };
}

function readSecond(reader: FlagReader): SidePlan | null {
  const url = reader.text('compare');
  const serveFlags = reader.text('compareServe');
  const target = reader.choice('compareTarget', targetNames) ?? 'rcp';
  const pid = reader.number('comparePid', bounds.pid);
  const own = { target, model: reader.text('compareModel'), apiKey: reader.text('compareApiKey') };
  if (url !== null && serveFlags !== null) reader.refuse('--compare and --compare-serve: give one of them');
  if (url !== null) {
    checkUrl(reader, '--compare', url);
    return { ...own, server: { kind: 'running', url, pid } };
  }
  const needUrl = ['compareTarget', 'comparePid', ...(serveFlags === null ? ['compareModel', 'compareApiKey'] : [])];
  for (const key of needUrl) if (reader.isSet(key)) reader.refuse(`${flagName(key)} needs --compare`);
  return serveFlags === null ? null : { ...own, server: { kind: 'started', flags: splitWords(serveFlags) } };
}

function checkUrl(reader: FlagReader, what: string, url: string): void {
  const { protocol = '' } = URL.canParse(url) ? new URL(url) : {};
  if (!['http:', 'https:'].includes(protocol))
    reader.refuse(`${what} must begin with http:// or https://, not "${url}"`);
}

function refuseContradictions(reader: FlagReader, { mode, mix }: BenchPlan): void {
  const isOpen = mode === 'open';
  if (reader.isSet('passes') && reader.isSet('durationS')) reader.refuse('--passes and --duration-s: give one of them');
  if (isOpen && mix === 'both') reader.refuse('--mix both sends its queries at a rate already: --mode closed or list');
  if (isOpen && mix !== 'both' && !reader.isSet('rate')) reader.refuse('--mode open needs --rate');
  for (const key of ['rate', 'maxInFlight', 'seed']) {
    if (reader.isSet(key) && !isOpen && mix !== 'both')
      reader.refuse(`${flagName(key)} is for --mode open or --mix both`);
  }
  if (reader.isSet('callers') && mode !== 'closed') reader.refuse('--callers is for --mode closed');
}
