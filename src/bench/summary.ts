/** Owns what the rounds of a load amount to. */
import type { LoadName, LoadResult } from './round.ts';
import type { ServerWork } from './server-metrics.ts';
import { median, quantile } from './statistics.ts';
import type { Counts, FailureCount } from './tally.ts';

/** A load, over one round or several; null where nothing tells. */
export interface LoadSummary {
  readonly load: LoadName;
  /** Of the rounds, the median. */
  readonly textsPerSecond: number;
  readonly tokensPerSecond: number | null;
  /** Of all answers of all rounds. @unit ms */
  readonly p50Ms: number | null;
  readonly p90Ms: number | null;
  readonly p99Ms: number | null;
  readonly answered: number;
  readonly failures: Counts['failures'];
  readonly refused: number;
  readonly refusalP50Ms: number | null;
  readonly refusalP99Ms: number | null;
  readonly dropped: number;
  /** Of the server, all rounds together. @unit s */
  readonly cpuSeconds: number | null;
  readonly cpuMsPerText: number | null;
  readonly cpuMsPerThousandTokens: number | null;
  /** Of the benchmark itself. @unit s */
  readonly clientCpuSeconds: number;
  readonly work: ServerWork | null;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** The sum; null where any value is. */
function sumOrNull(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === values.length ? sum(known) : null;
}

const medianOrNull = (values: readonly (number | null)[]): number | null => {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : median(known);
};

const quantileOrNull = (values: readonly number[], share: number): number | null =>
  values.length === 0 ? null : quantile(values, share);

function mergeFailures(results: readonly LoadResult[]): Record<string, FailureCount> {
  const merged: Record<string, FailureCount> = {};
  for (const [reason, { count, example }] of results.flatMap(({ counts }) => Object.entries(counts.failures))) {
    const known = merged[reason];
    merged[reason] = { count: (known?.count ?? 0) + count, example: known?.example ?? example };
  }
  return merged;
}

function mergeWork(works: readonly (ServerWork | null)[]): ServerWork | null {
  const known = works.filter((work) => work !== null);
  if (known.length === 0) return null;
  const middle = (key: keyof ServerWork) => medianOrNull(known.map((work) => work[key]));
  const queues = known.map(({ maxQueueSeconds }) => maxQueueSeconds).filter((seconds) => seconds !== null);
  return {
    paddingEfficiency: middle('paddingEfficiency'),
    inputsPerRun: middle('inputsPerRun'),
    tokensPerRun: middle('tokensPerRun'),
    runOverPredicted: middle('runOverPredicted'),
    maxQueueSeconds: queues.length === 0 ? null : Math.max(...queues),
  };
}

const perSecond = (count: number, elapsedMs: number): number => (elapsedMs > 0 ? (count * 1000) / elapsedMs : 0);

/** What the results of one load, one a round, amount to. */
export function summarise(load: LoadName, results: readonly LoadResult[]): LoadSummary {
  const latenciesMs = results.flatMap(({ counts }) => counts.latenciesMs);
  const refusalsMs = results.flatMap(({ counts }) => counts.refusalsMs);
  const cpuMs = sumOrNull(results.map(({ cost }) => cost.cpuMs));
  const texts = sum(results.map(({ counts }) => counts.texts));
  const tokens = sumOrNull(results.map(({ counts }) => counts.tokens));
  return {
    load,
    textsPerSecond: median(results.map(({ counts, cost }) => perSecond(counts.texts, cost.elapsedMs))),
    tokensPerSecond: medianOrNull(
      results.map(({ counts, cost }) => (counts.tokens === null ? null : perSecond(counts.tokens, cost.elapsedMs))),
    ),
    p50Ms: quantileOrNull(latenciesMs, 0.5),
    p90Ms: quantileOrNull(latenciesMs, 0.9),
    p99Ms: quantileOrNull(latenciesMs, 0.99),
    answered: latenciesMs.length,
    failures: mergeFailures(results),
    refused: refusalsMs.length,
    refusalP50Ms: quantileOrNull(refusalsMs, 0.5),
    refusalP99Ms: quantileOrNull(refusalsMs, 0.99),
    dropped: sum(results.map(({ counts }) => counts.dropped)),
    cpuSeconds: cpuMs === null ? null : cpuMs / 1000,
    cpuMsPerText: cpuMs === null || texts === 0 ? null : cpuMs / texts,
    cpuMsPerThousandTokens: cpuMs === null || tokens === null || tokens === 0 ? null : (cpuMs * 1000) / tokens,
    clientCpuSeconds: sum(results.map(({ cost }) => cost.clientCpuMs)) / 1000,
    work: mergeWork(results.map(({ cost }) => cost.work)),
  };
}
