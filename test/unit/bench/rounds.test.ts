import { describe, expect, it } from 'vitest';
import { compareLoads, compareSides, orderOf, ratioOf } from '../../../src/bench/compare.ts';
import type { RoundResult, SideRound } from '../../../src/bench/compare.ts';
import { readPlan } from '../../../src/bench/plan.ts';
import { runRound } from '../../../src/bench/round.ts';
import type { LoadName, LoadResult } from '../../../src/bench/round.ts';
import type { SideName } from '../../../src/bench/side.ts';
import { summarise } from '../../../src/bench/summary.ts';
import type { EmbedRequest } from '../../../src/bench/target.ts';
import { systemClock } from '../../../src/clock.ts';

function resultOf(load: LoadName, texts: number, elapsedMs: number, tokens: number | null = null): LoadResult {
  const counts = { texts, tokens, latenciesMs: [elapsedMs], refusalsMs: [], dropped: 1, failures: {} };
  return { load, counts, cost: { elapsedMs, cpuMs: 10 * texts, clientCpuMs: 1, work: null } };
}
const sideOf = (side: SideName, ...results: LoadResult[]): SideRound => ({
  side,
  loads: results.map((result) => summarise(result.load, [result])),
});
const named = <Item extends { name: string }>(items: readonly Item[], name: string): Item | undefined =>
  items.find((item) => item.name === name);

describe('rounds', () => {
  it('change who goes first', () => {
    expect([0, 1, 2].map((round) => orderOf(round, ['A', 'B']))).toEqual([
      ['A', 'B'],
      ['B', 'A'],
      ['A', 'B'],
    ]);
  });

  it('are compared one by one: median, least and greatest of A over B, whoever went first', () => {
    const speeds = [
      [100, 50],
      [90, 30],
      [80, 80],
    ] as const;
    const rounds: RoundResult[] = speeds.map(([a, b], round) =>
      orderOf(round, [sideOf('A', resultOf('documents', a, 1000)), sideOf('B', resultOf('documents', b, 1000))]),
    );
    expect(named(compareSides(rounds), 'documents, texts/s: A / B')).toEqual({
      name: 'documents, texts/s: A / B',
      isHigherBetter: true,
      median: 2,
      min: 1,
      max: 3,
      perRound: [2, 3, 1],
    });
  });

  it('a measure that one server does not tell in one round has no ratio', () => {
    const pairs = [
      [2, 1],
      [2, null],
    ] as const;
    expect(ratioOf({ name: 'x', isHigherBetter: true }, pairs)).toBeNull();
    expect(ratioOf({ name: 'x', isHigherBetter: true }, [[2, 0]])).toBeNull();
    expect(ratioOf({ name: 'x', isHigherBetter: true }, [])).toBeNull();
  });

  it('say what queries and documents do to each other', () => {
    const rounds = [
      [
        sideOf(
          'A',
          resultOf('queries alone', 1, 5),
          resultOf('documents alone', 100, 1000),
          resultOf('documents with queries', 90, 1000),
          resultOf('queries with documents', 1, 15),
        ),
      ],
    ];
    const ratios = compareLoads(rounds, 'A');
    expect(named(ratios, 'A: queries, p99: with documents / alone')).toMatchObject({
      median: 3,
      isHigherBetter: false,
    });
    expect(named(ratios, 'A: documents, texts/s: with queries / alone')).toMatchObject({ median: 0.9 });
    expect(compareLoads([[sideOf('A', resultOf('documents', 1, 1))]], 'A')).toEqual([]);
  });

  it('amount to the median speed, quantiles over all answers, and sums', () => {
    const summary = summarise('documents', [
      resultOf('documents', 100, 1000, 5000),
      resultOf('documents', 100, 2000, 5000),
      resultOf('documents', 100, 500, 5000),
    ]);
    expect(summary).toMatchObject({
      textsPerSecond: 100,
      tokensPerSecond: 5000,
      p50Ms: 1000,
      p99Ms: 2000,
      answered: 3,
      dropped: 3,
      cpuSeconds: 3,
      cpuMsPerText: 10,
      cpuMsPerThousandTokens: 200,
      refusalP50Ms: null,
    });
    expect(summarise('documents', [resultOf('documents', 1, 1)])).toMatchObject({ cpuMsPerThousandTokens: null });
  });
});

describe('one round', () => {
  async function run(flags: Record<string, string>) {
    const sent: EmbedRequest[] = [];
    const results = await runRound({
      side: {
        pid: null,
        sample: async () => null,
        send: async (request) => {
          sent.push(request);
          return { outcome: { kind: 'answered', tokens: request.texts.length }, elapsedMs: 1 };
        },
      },
      plan: readPlan(flags, { operands: [], serveFlags: [] }),
      texts: { documents: ['d1', 'd2', 'd3'], queries: ['q1', 'q2'] },
      round: 0,
      clock: systemClock,
      signal: new AbortController().signal,
    });
    return { sent, results };
  }

  it('sends every document in each pass, one a call', async () => {
    const { sent, results } = await run({ passes: '2' });
    expect(sent.flatMap(({ texts }) => texts).toSorted()).toEqual(['d1', 'd1', 'd2', 'd2', 'd3', 'd3']);
    expect(sent.every(({ kind, isBulk, texts }) => kind === 'document' && !isBulk && texts.length === 1)).toBe(true);
    expect(results).toMatchObject([{ load: 'documents', counts: { texts: 6, tokens: 6 }, cost: { cpuMs: null } }]);
  });

  it('as a list sends all in one call', async () => {
    expect((await run({ mode: 'list' })).sent.map(({ texts }) => texts)).toEqual([['d1', 'd2', 'd3']]);
  });

  it('sends queries as queries', async () => {
    const { sent } = await run({ mix: 'queries', mode: 'open', rate: '10000' });
    expect(sent.map(({ kind, texts }) => [kind, ...texts])).toEqual([
      ['query', 'q1'],
      ['query', 'q2'],
    ]);
  });

  it('of both times queries alone, documents alone, and each beside the other, documents as bulk', async () => {
    const { sent, results } = await run({ mix: 'both', rate: '100000' });
    const loads = results.map(({ load }) => load);
    expect(loads).toEqual(['queries alone', 'documents alone', 'documents with queries', 'queries with documents']);
    expect(results[0]?.counts.texts).toBe(100);
    expect(results[1]?.counts.texts).toBe(3);
    expect(results[2]?.counts.texts).toBe(3);
    expect(sent.every(({ kind, isBulk }) => isBulk === (kind === 'document'))).toBe(true);
  });
});
