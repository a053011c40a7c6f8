import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { planRuns, runLimitsOf } from '../../../src/executor/plan.ts';
import type { ModelLoad, RunBatch, RunPolicy } from '../../../src/executor/protocol.ts';
import { warmUp, warmUpShapes } from '../../../src/executor/warm-up.ts';
import type { WarmUpShape } from '../../../src/executor/warm-up.ts';
import { plainLoad } from '../../support/model-facts.ts';

const limits = runLimitsOf('webgpu');
const model = (maxTokens: number, policy: Partial<RunPolicy> = {}, more: Partial<ModelLoad> = {}): ModelLoad => ({
  ...plainLoad,
  modelId: 'm',
  graphPath: '/m.onnx',
  heads: ['dense'],
  vocabularySize: 100,
  maxTokens,
  precision: 'fp32',
  maxSimGraphPath: null,
  runPolicy: { kind: 'padded', fixedBatch: null, fixedTokens: null, ...policy },
  ...more,
});
const pairs = (shapes: readonly WarmUpShape[]) => shapes.map(({ texts, tokens }) => [texts, tokens]);
const sizeOf = (batch: RunBatch) => [batch.items.length, batch.items[0]?.ids.length];

describe('the sizes that are run before a GPU serves', () => {
  it('are full runs, then single texts, largest first', () => {
    expect(pairs(warmUpShapes('dense', model(512), limits))).toEqual([
      [8, 512],
      [32, 128],
      [128, 32],
      [1, 512],
      [1, 256],
      [1, 128],
      [1, 64],
      [1, 32],
      [1, 16],
      [1, 8],
    ]);
  });

  it('are the one that the graph is fixed to, and hold one text where none may share a run', () => {
    expect(pairs(warmUpShapes('dense', model(512, { fixedBatch: 4, fixedTokens: 32 }), limits))).toEqual([[4, 32]]);
    expect(warmUpShapes('dense', model(512, { kind: 'alone' }), limits).every(({ texts }) => texts === 1)).toBe(true);
  });

  it('have at most 1,024 tokens where a weight for each vocabulary entry is made', () => {
    const sparse = { form: 'terms', unweightedIds: [], topTerms: 1024 } as const;
    expect(pairs(warmUpShapes('sparse', model(512, {}, { sparse }), limits))[0]).toEqual([2, 512]);
  });

  it('are few, start with the largest that can come, and are sizes that requests are put into', () => {
    const policy = fc.record({
      kind: fc.constantFrom('alone', 'equalLength', 'padded'),
      fixedBatch: fc.constantFrom(null, 1, 4),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9_000 }),
        policy,
        fc.constantFrom('webgpu', 'cuda'),
        (max, runPolicy, name) => {
          const device = runLimitsOf(name);
          const load = model(max, runPolicy);
          const shapes = warmUpShapes('dense', load, device);
          expect(shapes.length).toBeGreaterThan(0);
          expect(shapes.length).toBeLessThanOrEqual(10);
          for (const { texts, tokens } of shapes) {
            const count = runPolicy.kind === 'alone' ? 1 : texts;
            const runs = planRuns(Array<number>(count).fill(tokens), 'dense', load, device);
            expect(pairs(runs)).toEqual([[texts, tokens]]);
            expect(texts * tokens).toBeLessThanOrEqual(
              Math.max(...shapes.slice(0, 1).map((one) => one.texts * one.tokens)),
            );
          }
        },
      ),
    );
  });
});

describe('a warm-up', () => {
  /** A device that needs so long for each token, beside 5 ms for each run. */
  const deviceOf = (tokenMs: number) =>
    vi.fn((batch: RunBatch) => {
      const tokens = batch.items.reduce((sum, { ids }) => sum + ids.length, 0);
      return Promise.resolve({ rows: [], computeMs: 5 + tokens * tokenMs });
    });
  const sizes = (run: ReturnType<typeof deviceOf>) => run.mock.calls.map(([batch]) => sizeOf(batch));

  it('runs every size of every model where the device is fast', async () => {
    const run = deviceOf(0.01);
    await warmUp([model(64), model(32)], limits, run);
    const paces = (long: number) => [
      [1, long],
      [1, long],
      [1, 8],
      [1, 8],
    ];
    const planned = (maxTokens: number) => pairs(warmUpShapes('dense', model(maxTokens), limits));
    expect(sizes(run)).toEqual([...paces(64), ...planned(64), ...paces(32), ...planned(32)]);
  });

  it('leaves out what would take a slow device long', async () => {
    const run = deviceOf(10);
    await warmUp([model(512)], limits, run);
    expect(Math.max(...run.mock.calls.map(([batch]) => batch.items.length * (batch.items[0]?.ids.length ?? 0)))).toBe(
      128,
    );
  });

  it.each([2_048, 32_768])(
    'never runs the longest text of %i tokens where that would take too long',
    async (maxTokens) => {
      const spent: number[] = [];
      const run = vi.fn(({ items }: RunBatch) => {
        const tokens = items.reduce((sum, { ids }) => sum + ids.length ** 2, 0);
        spent.push(5 + tokens / 100);
        return Promise.resolve({ rows: [], computeMs: 5 + tokens / 100 });
      });
      await warmUp([model(maxTokens)], limits, run);
      expect(Math.max(...run.mock.calls.map(([batch]) => batch.items[0]?.ids.length ?? 0))).toBeLessThan(maxTokens);
      expect(Math.max(...spent)).toBeLessThan(5_000);
    },
  );

  it('runs only ids that the model knows, and a head of its own graph', async () => {
    const run = deviceOf(0.01);
    await warmUp([model(128, {}, { vocabularySize: 3, heads: ['maxSim', 'rows'] })], limits, run);
    for (const [batch] of run.mock.calls) {
      expect(batch.head).toBe('rows');
      expect(batch.items.every(({ ids }) => ids.every((id) => id >= 0 && id < 3))).toBe(true);
    }
  });

  it('says how much of its time is left', async () => {
    const leftMs = await warmUp([model(64)], limits, deviceOf(0.01));
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(15_000);
  });

  it('runs one text of a model whose texts run alone, however many rows its graph is fixed to', async () => {
    const run = deviceOf(0.01);
    await warmUp([model(64, { kind: 'alone', fixedBatch: 4 })], limits, run);
    expect(run.mock.calls.every(([batch]) => batch.items.length === 1)).toBe(true);
  });

  it('fails where a run fails', async () => {
    await expect(warmUp([model(64)], limits, () => Promise.reject(new Error('out of memory')))).rejects.toThrow(
      'memory',
    );
  });
});
