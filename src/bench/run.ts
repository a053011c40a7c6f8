/** Owns a benchmark from its plan to its result: servers opened, warmed up, measured in rounds, and given up. */
import type { Clock } from '../clock.ts';
import { runCallers } from './callers.ts';
import { compareLoads, compareSides, orderOf } from './compare.ts';
import type { Ratio, RoundResult } from './compare.ts';
import { bundledTexts, cutToWords, readTexts, spread } from './corpus.ts';
import type { BenchPlan } from './plan.ts';
import { createRequests } from './requests.ts';
import { runRound } from './round.ts';
import type { LoadResult, Texts } from './round.ts';
import { BenchFailure, openSide } from './side.ts';
import type { Side, SideContext, SideName } from './side.ts';
import { summarise } from './summary.ts';
import type { LoadSummary } from './summary.ts';
import { createTally } from './tally.ts';

/** Callers of the warm-up. */
const warmUpCallers = 4;
/** Holds the process while nothing but a timer that does not is waited for. @unit ms */
const holdEveryMs = 60_000;

/** All that was measured. */
export interface BenchResult {
  readonly sides: readonly { readonly name: SideName; readonly label: string }[];
  /** How many different texts were sent. */
  readonly texts: { readonly documents: number; readonly queries: number };
  readonly rounds: readonly RoundResult[];
  /** All rounds together. */
  readonly summary: readonly { readonly side: SideName; readonly loads: readonly LoadSummary[] }[];
  readonly ratios: readonly Ratio[];
}

/**
 * The texts that a plan sends.
 * @throws ConfigurationError
 */
export function textsOf({ corpus, queries, documents, maxWords, mix }: BenchPlan): Texts {
  const read = (path: string) => readTexts(path).map((text) => (maxWords === null ? text : cutToWords(text, maxWords)));
  const all = mix === 'queries' ? [] : read(corpus ?? bundledTexts.documents);
  return {
    documents: spread(all, documents ?? all.length),
    queries: mix === 'bulk' ? [] : read(queries ?? bundledTexts.queries),
  };
}

/**
 * Runs a benchmark.
 * @throws BenchFailure, ConfigurationError
 */
export async function runBench(
  plan: BenchPlan,
  context: SideContext & { readonly clock: Clock; readonly progress: (line: string) => void },
): Promise<BenchResult> {
  const texts = textsOf(plan);
  const sides: Side[] = [];
  const hold = setInterval(() => undefined, holdEveryMs);
  const end = () => Promise.all(sides.map((side) => side.end()));
  // Calls under way would be waited for: without their server they end at once.
  const abort = () => void end();
  context.signal.addEventListener('abort', abort, { once: true });
  try {
    sides.push(await openSide('A', plan.first, plan, context));
    if (plan.second !== null) sides.push(await openSide('B', plan.second, plan, context));
    for (const side of sides) {
      context.progress(`${side.name}: ${side.label}`);
      await warmUp(side, plan, texts, context.signal);
    }
    const results = await runRounds(sides, plan, texts, context);
    return resultOf(sides, texts, results);
  } finally {
    context.signal.removeEventListener('abort', abort);
    await end();
    clearInterval(hold);
  }
}

/** Results of each round, by the name of the server, in the order of turns. */
type Results = readonly { readonly name: SideName; readonly results: readonly LoadResult[] }[];

async function runRounds(
  sides: readonly Side[],
  plan: BenchPlan,
  texts: Texts,
  { clock, signal, progress }: SideContext & { readonly clock: Clock; readonly progress: (line: string) => void },
): Promise<Results[]> {
  const rounds: Results[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    const turns: { name: SideName; results: LoadResult[] }[] = [];
    for (const side of orderOf(round, sides)) {
      if (!signal.aborted) {
        turns.push({ name: side.name, results: await runRound({ side, plan, texts, round, clock, signal }) });
      }
      if (signal.aborted) throw new BenchFailure('interrupted');
    }
    rounds.push(turns);
    const speeds = turns.flatMap(({ name, results }) =>
      results.map((result) => `${name} ${result.load} ${summarise(result.load, [result]).textsPerSecond.toFixed(1)}`),
    );
    progress(`round ${round + 1} of ${plan.rounds}: ${speeds.join(', ')} (texts/s)`);
  }
  return rounds;
}

async function warmUp(side: Side, plan: BenchPlan, texts: Texts, signal: AbortSignal): Promise<void> {
  const tally = createTally();
  const kinds = [
    { kind: 'document', own: texts.documents },
    { kind: 'query', own: texts.queries },
  ] as const;
  for (const { kind, own } of kinds) {
    if (own.length === 0) continue;
    const isOver = () => signal.aborted;
    const next = createRequests(own, { kind, isBulk: false, batch: 1, maxCalls: plan.warmUp, isOver });
    await runCallers(warmUpCallers, next, async (request) => {
      const { outcome, elapsedMs } = await side.send(request);
      tally.add(request.texts.length, outcome, elapsedMs);
    });
  }
  if (signal.aborted) throw new BenchFailure('interrupted');
  const { latenciesMs, failures } = tally.counts();
  const [first] = Object.entries(failures);
  if (latenciesMs.length > 0 || first === undefined) return;
  throw new BenchFailure(`${side.name}: no call of the warm-up was answered: ${first[0]}: ${first[1].example}`);
}

function resultOf(sides: readonly Side[], texts: Texts, results: readonly Results[]): BenchResult {
  const rounds = results.map((turns) =>
    turns.map(({ name, results: own }) => ({ side: name, loads: own.map((one) => summarise(one.load, [one])) })),
  );
  const summary = sides.map(({ name }) => {
    const own = results.flatMap((turns) => turns.filter((turn) => turn.name === name));
    const loads = own[0]?.results.map(({ load }) => load) ?? [];
    const resultsOf = (load: LoadResult['load']) =>
      own.flatMap((turn) => turn.results.filter((result) => result.load === load));
    return { side: name, loads: loads.map((load) => summarise(load, resultsOf(load))) };
  });
  const mutual = sides.flatMap(({ name }) => compareLoads(rounds, name));
  return {
    sides: sides.map(({ name, label }) => ({ name, label })),
    texts: { documents: texts.documents.length, queries: texts.queries.length },
    rounds,
    summary,
    ratios: [...mutual, ...(sides.length > 1 ? compareSides(rounds) : [])],
  };
}
