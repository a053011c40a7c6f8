/** Owns ten times more calls than a server can answer: what it still answers, how it refuses, and when it says to return. */
import { setTimeout as wait } from 'node:timers/promises';
import { poissonArrivals } from '../../src/bench/arrivals.ts';
import { runCallers } from '../../src/bench/callers.ts';
import { bundledTexts, readTexts } from '../../src/bench/corpus.ts';
import { createHttpClient, type HttpClient } from '../../src/bench/http-client.ts';
import { runOpenLoop } from '../../src/bench/open-loop.ts';
import { createRequests, type NextRequest } from '../../src/bench/requests.ts';
import { createSend, type Send } from '../../src/bench/send.ts';
import { median, quantile } from '../../src/bench/statistics.ts';
import { createTally, failureTotal, type Tally } from '../../src/bench/tally.ts';
import { rcpTarget } from '../../src/bench/targets/rcp.ts';
import { systemClock } from '../../src/clock.ts';
import type { Random } from '../fuzz/random.ts';
import { atLeast, atMost, none, type Check } from './checks.ts';
import { measureReturns } from './return-time.ts';

/** Texts of one call: enough that the work of a call far outweighs that of sending it, which shares the processors. */
const textsPerCall = 16;
/** Enough to keep every executor in full batches, few enough that none of their calls is refused. */
const callers = 8;
/** How long callers are watched that wait for their answers. @unit ms */
const closedMs = 8_000;
const overload = 10;
/** Part of the overload in which the queue fills. */
const fillShare = 0.25;
const maxInFlight = 5_000;
/** Above the deadline of the server. @unit ms */
const timeoutMs = 60_000;

interface Load {
  readonly send: Send;
  readonly texts: readonly string[];
  readonly tally: Tally;
  /** @unit ms */
  readonly windowMs: number;
}

let calls = 0;

/** Calls whose texts are all different: equal ones that wait at the same time would be run once. */
function requestsOf({ texts }: Load, isOver: () => boolean): NextRequest {
  const next = createRequests(texts, {
    kind: 'document',
    isBulk: false,
    batch: textsPerCall,
    maxCalls: Infinity,
    isOver,
  });
  return () => {
    const request = next();
    const call = String(++calls);
    return request === null ? null : { ...request, texts: request.texts.map((text) => `${call} ${text}`) };
  };
}

/** Texts a second that callers get who wait for their answers. */
async function closedLoop(load: Load): Promise<number> {
  const startMs = performance.now();
  const isOver = () => performance.now() - startMs > load.windowMs;
  await runCallers(callers, requestsOf(load, isOver), async (request) => {
    const { outcome, elapsedMs } = await load.send(request);
    load.tally.add(request.texts.length, outcome, elapsedMs);
  });
  return load.tally.counts().texts / ((performance.now() - startMs) / 1000);
}

/**
 * Texts a second that are answered while calls arrive at this rate whatever happens, counted once the queue is full:
 * what has been begun when the counting ends was then begun at its start as well.
 */
async function openLoop(load: Load, callsPerSecond: number, random: Random): Promise<number> {
  const startMs = performance.now();
  const isOver = () => performance.now() - startMs > load.windowMs;
  const answered = () => ({ texts: load.tally.counts().texts, atMs: performance.now() });
  const countRate = async () => {
    await wait(load.windowMs * fillShare);
    const full = answered();
    await wait(load.windowMs * (1 - fillShare));
    const end = answered();
    return (end.texts - full.texts) / ((end.atMs - full.atMs) / 1000);
  };
  const rate = countRate();
  await runOpenLoop({
    next: requestsOf(load, isOver),
    arrivals: poissonArrivals(callsPerSecond, random),
    maxInFlight,
    send: load.send,
    tally: load.tally,
    clock: systemClock,
    signal: new AbortController().signal,
  });
  return rate;
}

/** The checks of an overload of ten times. */
export async function checkOverload(options: {
  readonly baseUrl: string;
  readonly random: Random;
  /** How long the overload lasts. @unit ms */
  readonly windowMs: number;
}): Promise<Check[]> {
  const { baseUrl, random, windowMs } = options;
  const texts = readTexts(bundledTexts.documents);
  const client: HttpClient = createHttpClient(baseUrl, { maxConnections: maxInFlight, timeoutMs });
  try {
    const settings = await rcpTarget.settle(client, rcpTarget.path, null);
    const send = createSend(client, rcpTarget, rcpTarget.path, settings);
    const load = () => ({ send, texts, tally: createTally(), windowMs });
    const patient = () => ({ ...load(), windowMs: closedMs });
    await closedLoop({ ...load(), windowMs: closedMs / 2 });
    const before = await closedLoop(patient());
    const crowded = load();
    const goodput = await openLoop(crowded, (overload * before) / textsPerCall, random);
    // What the machine has to give changes: the capacity is measured on both sides of the overload.
    const after = await closedLoop(patient());
    const { refusalsMs, failures, dropped } = crowded.tally.counts();
    const returns = await measureReturns(client, texts.slice(0, textsPerCall));
    return [
      atLeast(
        `goodput at ${overload}x overload / capacity (${before.toFixed(0)} and ${after.toFixed(0)} texts/s)`,
        goodput / ((before + after) / 2),
        0.95,
      ),
      atMost(`p50 of ${refusalsMs.length} refusals`, quantile(refusalsMs, 0.5), 5, 'ms'),
      atMost(`p99 of ${refusalsMs.length} refusals`, quantile(refusalsMs, 0.99), 50, 'ms'),
      none(
        'calls at 10x overload that failed otherwise, or could not be sent',
        failureTotal(failures) + dropped === 0 ? [] : [`${dropped} not sent, ${JSON.stringify(failures)}`],
      ),
      ...returns.map(({ retryAfterMs, admittedMs }) => ({
        rule: `retryAfterMs ${retryAfterMs} is right within half`,
        found: `an equal call was admitted after ${admittedMs.toFixed(0)} ms`,
        isMet: Math.abs(retryAfterMs - admittedMs) <= Math.max(admittedMs, retryAfterMs) / 2,
      })),
      {
        rule: 'refusals tell when to return',
        found: `median ${median(returns.map(({ retryAfterMs }) => retryAfterMs)).toFixed(0)} ms`,
        isMet: returns.length > 0,
      },
    ];
  } finally {
    client.close();
  }
}
