import { beforeAll, describe, expect, it } from 'vitest';
import { planRuns, runLimitsOf } from '../../../src/executor/plan.ts';
import type { PlanFacts, PlannedRun } from '../../../src/executor/plan.ts';
import type { ProviderName } from '../../../src/executor/protocol.ts';
import { readDocuments } from '../../support/corpus.ts';
import { loadMinilm } from '../tokenize/minilm.ts';

/** Most tokens of a text of the embedded default model. */
const maxTokens = 256;
/** Share of the tokens of all runs that are of texts. */
const leastEfficiency = 0.95;

const facts = (kind: 'padded' | 'alone', precision: PlanFacts['precision']): PlanFacts => ({
  runPolicy: { kind, fixedBatch: null, fixedTokens: null },
  precision,
  sparse: null,
  maxTokens,
});

let lengths: readonly number[] = [];
beforeAll(async () => {
  const tokenizer = await loadMinilm(maxTokens);
  const tokenized = await tokenizer.tokenize(readDocuments().map(({ text }) => text));
  lengths = tokenized.map(({ ids }) => ids.length);
});

/** The runs of the collection where the planner sees `lookAhead` texts at a time, in the order of the collection. */
function runsOf(model: PlanFacts, provider: ProviderName, lookAhead: number): PlannedRun[] {
  const parts = Array.from({ length: Math.ceil(lengths.length / lookAhead) }, (_, part) =>
    lengths.slice(part * lookAhead, (part + 1) * lookAhead),
  );
  return parts.flatMap((part) => planRuns(part, 'dense', model, runLimitsOf(provider)));
}

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
const efficiencyOf = (runs: readonly PlannedRun[]) =>
  sum(lengths) / sum(runs.map(({ texts, tokens }) => texts * tokens));

describe('the padding of the bundled collection', () => {
  it.each([
    ['webgpu', 1_400],
    ['webgpu', 1_024],
    ['cuda', 1_400],
    ['cuda', 1_024],
  ] as const)('is at most a twentieth of what %s computes, with %i texts to choose from', (provider, lookAhead) => {
    const runs = runsOf(facts('padded', 'fp16'), provider, lookAhead);
    expect(sum(runs.map(({ positions }) => positions.length))).toBe(lengths.length);
    const efficiency = efficiencyOf(runs);
    expect(efficiency).toBeGreaterThanOrEqual(leastEfficiency);
    expect(efficiency).toBeLessThanOrEqual(1);
    // It is not had by many small runs: they are nearly as full as a device wants them.
    const fewest = sum(lengths) / runLimitsOf(provider).maxRunTokens;
    expect(runs.length).toBeLessThan(3 * fewest);
  });

  it.each([
    ['the policy', facts('alone', 'fp16'), 'cuda'],
    ['int8', facts('padded', 'int8'), 'cpu'],
  ] as const)('is nothing where %s has texts run alone', (_, model, provider) => {
    const runs = runsOf(model, provider, lengths.length);
    expect(runs).toHaveLength(lengths.length);
    expect(efficiencyOf(runs)).toBe(1);
  });
});
