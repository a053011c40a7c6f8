/** Owns the rows about the engine itself: where its nodes went, what it proved, and how fast it is beside the server. */
import type { OpenedGroup } from '../../src/engine/group.ts';
import type { Served } from '../../test/support/served.ts';
import { createClient } from '../bench/http-client.ts';
import { median } from '../../src/bench/statistics.ts';
import { startBareEngine, type BareEngine } from './bare-engine.ts';
import type { TimeBudget } from './budget.ts';
import type { Lane } from './offer.ts';
import type { Finding } from './rows.ts';
import { tokensIn, type SizedTexts } from './texts.ts';

/** An executor that has proved itself, and how that went. */
export async function provePlacement(opened: OpenedGroup): Promise<Finding<BareEngine>> {
  const engine = await startBareEngine(opened);
  return {
    isGood: true,
    value: `${engine.proofs} proofs`,
    detail:
      `${opened.loads.map(({ modelId }) => modelId).join(', ')} on ${engine.executors} executor(s): ` +
      (opened.provider === 'cpu' ? 'stored answers agree' : 'no compute node on the CPU, stored answers agree'),
    facts: { executors: engine.executors, proofs: engine.proofs },
    made: engine,
  };
}

/** What is run on both. */
export interface SideBySide {
  readonly served: Served;
  readonly engine: BareEngine;
  readonly lane: Lane;
  readonly sized: SizedTexts;
}

/** Most rounds; each is one pass through the texts on either side, who goes first changes. */
const maxRounds = 7;

const timed = async (work: Promise<unknown>): Promise<number> => {
  const startMs = performance.now();
  await work;
  return performance.now() - startMs;
};

/** The same texts in one call of the server and straight to the executors; the first round warms up where there are more. */
export async function compareWithBare(
  { served, engine, lane: { spoken, head, model: modelId }, sized }: SideBySide,
  budget: TimeBudget,
): Promise<Finding> {
  const client = createClient(served.baseUrl, 1);
  const rounds: { bareMs: number; servedMs: number }[] = [];
  const bare = () => timed(engine.run(head, modelId, sized.ids));
  const throughServer = () => client.call(spoken.method, spoken.params(sized.texts));
  try {
    for (let round = 0; round < maxRounds; round += 1) {
      const last = rounds.at(-1);
      if (last !== undefined && last.bareMs + last.servedMs > budget.remainingMs()) break;
      const early = round % 2 === 0 ? await bare() : null;
      const servedMs = await throughServer();
      rounds.push({ bareMs: early ?? (await bare()), servedMs });
    }
  } finally {
    client.close();
  }
  const counted = rounds.length > 1 ? rounds.slice(1) : rounds;
  const ratio = median(counted.map(({ bareMs, servedMs }) => bareMs / servedMs));
  const tokens = tokensIn(sized.ids);
  const rate = (pick: 'bareMs' | 'servedMs') =>
    ((1000 * tokens) / median(counted.map((times) => times[pick]))).toFixed(0);
  return {
    isGood: null,
    value: ratio.toFixed(3),
    detail:
      `${rate('servedMs')} of ${rate('bareMs')} tokens/s, ${sized.texts.length} texts of ${modelId} in one call, ` +
      `${counted.length} rounds`,
    facts: { rounds, tokens },
    made: null,
  };
}
