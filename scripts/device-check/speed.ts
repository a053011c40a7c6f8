/** Owns the speed of a server by length of text and by the way in which it is called. */
import { createClient, type BenchClient } from '../bench/http-client.ts';
import type { TimeBudget } from './budget.ts';
import { tokensIn, type SizedTexts } from './texts.ts';

/** A call that was answered. */
export interface Completion {
  /** @unit ms */
  readonly atMs: number;
  readonly tokens: number;
}

/** What came before this part of a measurement warmed up, and does not count. */
const warmUpShare = 1 / 3;

/**
 * Tokens per second once things are warm: from the first answer in the last two thirds of the time on, or from the start
 * where there were too few answers.
 */
export function steadyRate(completions: readonly Completion[], startMs: number): number {
  const endMs = Math.max(startMs, ...completions.map(({ atMs }) => atMs));
  const warmMs = startMs + (endMs - startMs) * warmUpShare;
  const markMs = Math.min(...completions.flatMap(({ atMs }) => (atMs >= warmMs ? [atMs] : [])), endMs);
  const fromMs = markMs < endMs ? markMs : startMs;
  const tokens = completions.reduce((sum, { atMs, tokens: some }) => (atMs > fromMs ? sum + some : sum), 0);
  return (1000 * tokens) / Math.max(1e-3, endMs - fromMs);
}

/** The method that is measured. */
export interface SpokenMethod {
  readonly method: 'embed' | 'embed/sparse';
  readonly params: (texts: readonly string[]) => object;
}

/** Dense vectors, in the form that costs the least. */
export const embedMethod: SpokenMethod = {
  method: 'embed',
  params: (inputs) => ({ inputs, encoding: 'f32-base64' }),
};

/** Sparse vectors. */
export const sparseMethod: SpokenMethod = { method: 'embed/sparse', params: (texts) => ({ texts }) };

/** Ways to call: text by text, by several callers text by text, and many texts in one call. */
const ways = [
  { name: 'single', callers: 1, mostTexts: 1 },
  { name: '16 callers', callers: 16, mostTexts: 1 },
  { name: 'one call', callers: 1, mostTexts: 256 },
] as const;

/** Tokens per second of a way; null where a single round would not have fitted into the time. */
export interface WaySpeed {
  readonly way: string;
  readonly tokensPerSecond: number | null;
  readonly calls: number;
}

/** Time of one way, after which no further call is made. @unit ms */
const wayMs = 2_000;
/** What a call should take at most, by the speed that is known. @unit ms */
const maxCallMs = 6_000;

/** The speed of every way, with texts of one length, by a client that opens its own connections. */
export async function measureSpeed(
  baseUrl: string,
  spoken: SpokenMethod,
  sized: SizedTexts,
  budget: TimeBudget,
): Promise<WaySpeed[]> {
  const client = createClient(baseUrl, 16);
  const tokensOfText = tokensIn(sized.ids) / sized.texts.length;
  const speeds: WaySpeed[] = [];
  let knownRate: number | null = null;
  try {
    for (const [index, { name, callers, mostTexts }] of ways.entries()) {
      const part = budget.part(Math.min(wayMs, budget.remainingMs() / (ways.length - index)));
      const affordableMs = Math.min(budget.remainingMs(), maxCallMs);
      const affordable = knownRate === null ? 1 : (knownRate * affordableMs) / 1000 / tokensOfText / callers;
      if (affordable < 1) {
        speeds.push({ way: name, tokensPerSecond: null, calls: 0 });
        continue;
      }
      const textsOfCall = Math.min(mostTexts, Math.floor(affordable));
      const { rate, calls } = await callFor(client, spoken, sized, { callers, textsOfCall, part });
      knownRate = Math.max(rate, knownRate ?? 0);
      speeds.push({ way: name, tokensPerSecond: rate, calls });
    }
  } finally {
    client.close();
  }
  return speeds;
}

interface Load {
  readonly callers: number;
  readonly textsOfCall: number;
  readonly part: TimeBudget;
}

/** Calls until the time is over; each caller calls at least once. */
async function callFor(
  client: BenchClient,
  { method, params }: SpokenMethod,
  { texts, ids }: SizedTexts,
  { callers, textsOfCall, part }: Load,
): Promise<{ rate: number; calls: number }> {
  const completions: Completion[] = [];
  const startMs = performance.now();
  let next = 0;
  const caller = async () => {
    do {
      const start = (next++ * textsOfCall) % texts.length;
      const slice = texts.slice(start, start + textsOfCall);
      await client.call(method, params(slice));
      completions.push({ atMs: performance.now(), tokens: tokensIn(ids.slice(start, start + textsOfCall)) });
    } while (part.remainingMs() > 0);
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return { rate: steadyRate(completions, startMs), calls: completions.length };
}
