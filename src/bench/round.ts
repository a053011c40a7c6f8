/** Owns one round: the loads that a plan asks for, run against one server. */
import type { Clock } from '../clock.ts';
import { poissonArrivals } from './arrivals.ts';
import { runCallers } from './callers.ts';
import { measure } from './measure.ts';
import type { Cost } from './measure.ts';
import { runOpenLoop } from './open-loop.ts';
import type { BenchPlan } from './plan.ts';
import { createRequests } from './requests.ts';
import type { NextRequest } from './requests.ts';
import type { Side } from './side.ts';
import { createRandom } from './statistics.ts';
import { createTally } from './tally.ts';
import type { Counts, Tally } from './tally.ts';

/** Queries that are timed before documents come beside them. */
const queriesAlone = 100;
/** Most calls of a load that is ended by time. */
const maxTimedCalls = 1_000_000;

/** The loads, as the report names them. */
export type LoadName =
  'documents' | 'queries' | 'queries alone' | 'documents alone' | 'documents with queries' | 'queries with documents';

/** What a load gave in one round. */
export interface LoadResult {
  readonly load: LoadName;
  readonly counts: Counts;
  readonly cost: Cost;
}

/** The texts to send. */
export interface Texts {
  readonly documents: readonly string[];
  readonly queries: readonly string[];
}

/** What a round needs beside the plan. */
export interface RoundContext {
  readonly side: Pick<Side, 'send' | 'sample' | 'pid'>;
  readonly plan: BenchPlan;
  readonly texts: Texts;
  /** Decides the arrivals, so that both servers of a round see the same ones. */
  readonly round: number;
  readonly clock: Clock;
  /** Ends the round early. */
  readonly signal: AbortSignal;
}

/** Runs the loads of one round, one after the other. */
export async function runRound(context: RoundContext): Promise<LoadResult[]> {
  switch (context.plan.mix) {
    case 'bulk':
      return [await runAlone(context, 'documents', (tally) => mainLoad(context, 'document', false, tally))];
    case 'queries':
      return [await runAlone(context, 'queries', (tally) => mainLoad(context, 'query', false, tally))];
    case 'both':
      return [
        await runAlone(context, 'queries alone', (tally) => pacedQueries(context, queriesAlone, context.signal, tally)),
        await runAlone(context, 'documents alone', (tally) => mainLoad(context, 'document', true, tally)),
        ...(await runTogether(context)),
      ];
  }
}

async function runAlone(
  { side, clock }: RoundContext,
  load: LoadName,
  run: (tally: Tally) => Promise<void>,
): Promise<LoadResult> {
  const tally = createTally();
  const cost = await measure(side, clock, () => run(tally));
  return { load, counts: tally.counts(), cost };
}

/** Documents, and queries beside them for as long as there are documents; the costs are those of both. */
async function runTogether(context: RoundContext): Promise<LoadResult[]> {
  const documents = createTally();
  const queries = createTally();
  const { clock, side, signal } = context;
  let documentsMs = 0;
  const cost = await measure(side, clock, async () => {
    const startMs = clock.nowMs();
    const isDone = new AbortController();
    const paced = pacedQueries(context, Infinity, AbortSignal.any([isDone.signal, signal]), queries);
    try {
      await mainLoad(context, 'document', true, documents);
      documentsMs = clock.nowMs() - startMs;
    } finally {
      isDone.abort();
      await paced;
    }
  });
  return [
    { load: 'documents with queries', counts: documents.counts(), cost: { ...cost, elapsedMs: documentsMs } },
    { load: 'queries with documents', counts: queries.counts(), cost: { ...cost, cpuMs: null, work: null } },
  ];
}

/** The documents or queries of a plan, in its mode. */
function mainLoad(context: RoundContext, kind: 'document' | 'query', isBulk: boolean, tally: Tally): Promise<void> {
  const { side, plan, texts, round, clock, signal } = context;
  const own = kind === 'query' ? texts.queries : texts.documents;
  const batch = plan.batch ?? own.length;
  const { durationMs } = plan;
  const endMs = durationMs === null ? Infinity : clock.nowMs() + durationMs;
  const next = createRequests(own, {
    kind,
    isBulk,
    batch,
    maxCalls: durationMs === null ? plan.passes * Math.ceil(own.length / batch) : maxTimedCalls,
    isOver: () => signal.aborted || clock.nowMs() >= endMs,
  });
  if (plan.mode === 'open') return openLoop(context, next, signal, tally, plan.seed + round);
  return runCallers(plan.mode === 'list' ? 1 : plan.callers, next, async (request) => {
    const { outcome, elapsedMs } = await side.send(request);
    tally.add(request.texts.length, outcome, elapsedMs);
  });
}

function pacedQueries(context: RoundContext, maxCalls: number, signal: AbortSignal, tally: Tally): Promise<void> {
  const { plan, texts, round } = context;
  const isOver = () => signal.aborted;
  const next = createRequests(texts.queries, { kind: 'query', isBulk: false, batch: 1, maxCalls, isOver });
  return openLoop(context, next, signal, tally, plan.seed + round);
}

function openLoop(
  { side, plan, clock }: RoundContext,
  next: NextRequest,
  signal: AbortSignal,
  tally: Tally,
  seed: number,
): Promise<void> {
  const arrivals = poissonArrivals(plan.ratePerSecond, createRandom(seed));
  return runOpenLoop({ next, arrivals, maxInFlight: plan.maxInFlight, send: side.send, tally, clock, signal });
}
