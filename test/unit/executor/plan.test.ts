import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cpuRunLimits, planRuns, runLimitsOf } from '../../../src/executor/plan.ts';
import type { RunLimits } from '../../../src/executor/plan.ts';
import type { ModelLoad, RunPolicy } from '../../../src/executor/protocol.ts';
import { rungOf, rungsUpTo } from '../../../src/executor/shape-ladder.ts';

type Facts = Pick<ModelLoad, 'runPolicy' | 'precision' | 'sparse' | 'maxTokens'>;
const facts = (kind: RunPolicy['kind'], policy: Partial<RunPolicy> = {}, more: Partial<Facts> = {}): Facts => ({
  runPolicy: { kind, fixedBatch: null, fixedTokens: null, ...policy },
  precision: 'fp32',
  sparse: null,
  maxTokens: 600,
  ...more,
});
const device: RunLimits = runLimitsOf('webgpu');
const kinds = ['alone', 'equalLength', 'padded'] as const;
const anyLengths = fc.array(fc.integer({ min: 1, max: 600 }), { maxLength: 80 });
const times = (count: number, length: number) => Array<number>(count).fill(length);

describe('the runs of a batch', () => {
  it('hold every text exactly once, in rows at least as long, within the bound of tokens', () => {
    const size = fc.option(fc.integer({ min: 1, max: 9 }), { nil: null });
    fc.assert(
      fc.property(
        anyLengths,
        fc.constantFrom(...kinds),
        size,
        fc.constantFrom(null, 600),
        fc.constantFrom(cpuRunLimits, device),
        (lengths, kind, fixedBatch, fixedTokens, limits) => {
          const runs = planRuns(lengths, 'dense', facts(kind, { fixedBatch, fixedTokens }), limits);
          const positions = runs.flatMap((run) => run.positions).sort((left, right) => left - right);
          expect(positions).toEqual([...lengths.keys()]);
          for (const run of runs) {
            const count = run.positions.length;
            const texts = limits.isPaddingCheap ? 2 ** Math.ceil(Math.log2(count)) : count;
            expect(run.texts).toBe(fixedBatch ?? texts);
            expect(count).toBeLessThanOrEqual(run.texts);
            const longest = Math.max(...run.positions.map((position) => lengths[position] ?? 0));
            const isOnLadder = limits.isPaddingCheap && kind === 'padded';
            expect(run.tokens).toBe(fixedTokens ?? (isOnLadder ? rungOf(longest, 600) : longest));
            const isBounded = run.texts * run.tokens <= limits.maxRunTokens;
            expect(isBounded || count === 1 || fixedBatch !== null).toBe(true);
          }
        },
      ),
    );
  });

  it('hold one text each where the policy or int8 says so', () => {
    const lengths = [5, 5, 9];
    for (const model of [facts('alone'), facts('padded', {}, { precision: 'int8' })]) {
      expect(planRuns(lengths, 'dense', model, device).map(({ positions }) => positions)).toEqual([[0], [1], [2]]);
    }
  });

  it('never mix lengths on a CPU, and none without a mask on any device', () => {
    fc.assert(
      fc.property(anyLengths, (lengths) => {
        const runs = [
          ...planRuns(lengths, 'dense', facts('padded')),
          ...planRuns(lengths, 'dense', facts('equalLength'), device),
        ];
        for (const { positions } of runs) {
          expect(new Set(positions.map((position) => lengths[position])).size).toBe(1);
        }
      }),
    );
  });

  it('on a CPU have 512 to 1,024 tokens where the texts suffice', () => {
    const runs = planRuns(times(70, 30), 'dense', facts('padded'));
    expect(runs.map(({ texts, tokens }) => texts * tokens)).toEqual([720, 720, 660]);
  });

  it('of any length share a run where padding is cheap, neighbours in length together', () => {
    const runs = planRuns([8, 512, 9, 500, 7], 'dense', facts('padded'), { ...device, maxRunTokens: 1024 });
    expect(runs).toEqual([
      { positions: [1, 3], texts: 2, tokens: 512 },
      { positions: [2, 0, 4], texts: 4, tokens: 16 },
    ]);
  });

  it('are padded on such a device only where that costs less than another run', () => {
    const runs = planRuns([400, 250, 240, 60, 5], 'dense', facts('padded'), device);
    expect(runs).toEqual([
      { positions: [0], texts: 1, tokens: 400 },
      { positions: [1, 2], texts: 2, tokens: 256 },
      { positions: [3, 4], texts: 2, tokens: 64 },
    ]);
  });

  it('are split into powers of two on such a device where copies would cost more than another run', () => {
    const texts = (count: number, length: number) =>
      planRuns(times(count, length), 'dense', facts('padded'), device).map((run) => [run.positions.length, run.texts]);
    expect(texts(33, 100)).toEqual([
      [32, 32],
      [1, 1],
    ]);
    expect(texts(5, 30)).toEqual([[5, 8]]);
  });

  it('come in few sizes on such a device, whatever the texts', () => {
    const sizes = new Set<string>();
    const some = fc.array(fc.integer({ min: 1, max: 600 }), { maxLength: 30 });
    fc.assert(
      fc.property(some, (lengths) => {
        for (const run of planRuns(lengths, 'dense', facts('padded'), device)) sizes.add(`${run.texts}x${run.tokens}`);
      }),
      { numRuns: 500 },
    );
    expect(sizes.size).toBeLessThanOrEqual(rungsUpTo(600).length * 10);
  });

  it('are filled up to a fixed batch, with other lengths before copies where a mask hides padding', () => {
    const lengths = [4, 7, 4];
    expect(planRuns(lengths, 'dense', facts('padded', { fixedBatch: 4 }))).toEqual([
      { positions: [1, 0, 2], texts: 4, tokens: 7 },
    ]);
    expect(planRuns(lengths, 'dense', facts('equalLength', { fixedBatch: 4 }))).toEqual([
      { positions: [1], texts: 4, tokens: 7 },
      { positions: [0, 2], texts: 4, tokens: 4 },
    ]);
  });

  it('have at most 1,024 tokens where a weight for each vocabulary entry is made, on every device', () => {
    const terms = { form: 'terms', unweightedIds: [], topTerms: 1024 } as const;
    const texts = (sparse: ModelLoad['sparse']) =>
      planRuns(times(16, 256), 'sparse', facts('padded', {}, { sparse }), device).map((run) => run.texts);
    expect(texts(terms)).toEqual([4, 4, 4, 4]);
    expect(texts({ ...terms, form: 'tokens' })).toEqual([16]);
  });
});
