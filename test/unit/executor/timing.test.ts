import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { fitRunCost, runMs } from '../../../src/device/cost-model.ts';
import { everyHead } from '../../../src/device/warm-up.ts';
import { cpuRunLimits, planRuns, runLimitsOf } from '../../../src/executor/plan.ts';
import type { ModelLoad, RunBatch, RunPolicy } from '../../../src/executor/protocol.ts';
import { createRunner } from '../../../src/executor/run.ts';
import type { RunBatchNow } from '../../../src/executor/run.ts';
import { loadModels, releaseModels } from '../../../src/executor/session.ts';
import type { LoadedModels } from '../../../src/executor/session.ts';
import { cpuTimingBudgetMs, timedShapes, timeHeads } from '../../../src/executor/timing.ts';
import { warmUpShapes } from '../../../src/executor/warm-up.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import { plainLoad } from '../../support/model-facts.ts';
import { goldenFolder } from '../model/golden-models.ts';
import { cacheDir, embeddedLoads, removeCache } from './real-device.ts';

const model = (policy: Partial<RunPolicy> = {}, more: Partial<ModelLoad> = {}): ModelLoad => ({
  ...plainLoad,
  modelId: 'm',
  graphPath: '/m.onnx',
  heads: ['dense'],
  vocabularySize: 100,
  maxTokens: 512,
  precision: 'fp32',
  maxSimGraphPath: null,
  runPolicy: { kind: 'padded', fixedBatch: null, fixedTokens: null, ...policy },
  ...more,
});
const pairs = (shapes: readonly { texts: number; tokens: number }[]) =>
  shapes.map(({ texts, tokens }) => [texts, tokens]);

describe('the sizes that are timed on a CPU', () => {
  const shapesOf = (load: ModelLoad) => pairs(timedShapes('dense', load, cpuRunLimits));

  it('are a short, an ordinary and a long text, and a full run where texts may share one', () => {
    const singles = [
      [1, 8],
      [1, 64],
      [1, 256],
    ];
    expect(shapesOf(model())).toEqual([...singles, [16, 64]]);
    expect(shapesOf(model({ kind: 'equalLength' }))).toEqual([...singles, [16, 64]]);
    expect(shapesOf(model({ kind: 'alone' }))).toEqual(singles);
    expect(shapesOf(model({}, { precision: 'int8' }))).toEqual(singles);
  });

  it('are no longer than the model takes, and no size comes twice', () => {
    expect(shapesOf(model({ kind: 'alone' }, { maxTokens: 64 }))).toEqual([
      [1, 8],
      [1, 64],
    ]);
    expect(shapesOf(model({ kind: 'alone' }, { maxTokens: 5 }))).toEqual([[1, 5]]);
  });

  it('are those that the graph is fixed to', () => {
    expect(shapesOf(model({ fixedBatch: 4, fixedTokens: 32 }))).toEqual([[4, 32]]);
    expect(shapesOf(model({ fixedTokens: 32 }))).toEqual([
      [1, 32],
      [32, 32],
    ]);
    expect(shapesOf(model({ kind: 'alone', fixedBatch: 2 }))).toEqual([
      [2, 8],
      [2, 64],
      [2, 256],
    ]);
  });

  it('are runs that texts are put into', () => {
    for (const kind of ['alone', 'equalLength', 'padded'] as const) {
      for (const fixedBatch of [null, 4]) {
        for (const fixedTokens of [null, 32]) {
          const load = model({ kind, fixedBatch, fixedTokens });
          for (const { texts, tokens } of timedShapes('dense', load, cpuRunLimits)) {
            const lengths = Array<number>(kind === 'alone' ? 1 : texts).fill(tokens);
            expect(pairs(planRuns(lengths, 'dense', load))).toEqual([[texts, tokens]]);
          }
        }
      }
    }
  });
});

describe('the sizes that are timed on a GPU', () => {
  it('are those of the warm-up, smallest first', () => {
    const limits = runLimitsOf('cuda');
    const shapes = timedShapes('dense', model(), limits);
    expect(shapes.toReversed()).toEqual(warmUpShapes('dense', model(), limits));
    expect(shapes[0]).toEqual({ texts: 1, tokens: 8 });
  });
});

describe('timing', () => {
  /** A device whose runs take as long as said, without taking any time. */
  const deviceOf = (msOf: (batch: RunBatch, call: number) => number) => {
    let call = 0;
    return vi.fn((batch: RunBatch) => Promise.resolve({ computeMs: msOf(batch, (call += 1)) }));
  };
  const tokensOf = ({ items }: RunBatch) => items.reduce((sum, { ids }) => sum + ids.length, 0);
  const question = { models: [model()], timedHeads: [], limits: cpuRunLimits, budgetMs: cpuTimingBudgetMs };

  it('runs the sizes in rounds, shortest first, and keeps the fastest run of each', async () => {
    const slowRounds = [1, 0, 2, 0];
    const run = deviceOf((batch, call) => tokensOf(batch) / 100 + (slowRounds[Math.floor((call - 1) / 4)] ?? 9));
    const [timed] = await timeHeads({ ...question, budgetMs: 60_000 }, run);
    expect(timed).toEqual({
      modelId: 'm',
      head: 'dense',
      timings: [
        { texts: 1, tokens: 8, ms: 0.08 },
        { texts: 1, tokens: 64, ms: 0.64 },
        { texts: 1, tokens: 256, ms: 2.56 },
        { texts: 16, tokens: 64, ms: 10.24 },
      ],
    });
    const round = [8, 64, 256, 1024];
    expect(run.mock.calls.map(([batch]) => tokensOf(batch))).toEqual([...round, ...round, ...round, ...round]);
  });

  it('runs the sizes of a GPU twice, which have been run before', async () => {
    const run = deviceOf(() => 1);
    const limits = runLimitsOf('webgpu');
    await timeHeads({ ...question, limits, budgetMs: 60_000 }, run);
    const sizes = warmUpShapes('dense', model(), limits).map(({ texts, tokens }) => texts * tokens);
    const round = sizes.toReversed();
    expect(run.mock.calls.map(([batch]) => tokensOf(batch))).toEqual([...round, ...round]);
  });

  it('leaves out what is expected not to fit into the time', async () => {
    const run = deviceOf((batch) => tokensOf(batch) * 2);
    const [timed] = await timeHeads(question, run);
    expect(timed?.timings.map(({ tokens }) => tokens)).toEqual([8, 64]);
  });

  it('times each head once at least, and no size twice, where there is no time', async () => {
    const run = deviceOf(() => 5_000);
    const models = [model({}, { heads: ['dense', 'rows'] })];
    const found = await timeHeads({ ...question, models, budgetMs: 0 }, run);
    expect(found.map(({ timings }) => timings)).toEqual([
      [{ texts: 1, tokens: 8, ms: 5_000 }],
      [{ texts: 1, tokens: 8, ms: 5_000 }],
    ]);
    expect(run).toHaveBeenCalledTimes(2);
  });

  it('leaves out the heads that are known, and maxSim', async () => {
    const run = deviceOf(() => 1);
    const models = [
      model({}, { heads: ['dense', 'rows', 'maxSim'] }),
      model({}, { modelId: 'n', heads: ['dense', 'sparse'] }),
    ];
    const timedHeads = [
      { modelId: 'm', head: 'dense' },
      { modelId: 'n', head: 'sparse' },
    ] as const;
    const found = await timeHeads({ ...question, models, timedHeads }, run);
    expect(found.map(({ modelId, head }) => `${modelId} ${head}`)).toEqual(['m rows', 'n dense']);
    const known = deviceOf(() => 1);
    expect(await timeHeads({ ...question, models, timedHeads: everyHead(models) }, known)).toEqual([]);
    expect(known).not.toHaveBeenCalled();
  });

  it('fails where a run fails', async () => {
    await expect(timeHeads(question, () => Promise.reject(new Error('out of memory')))).rejects.toThrow('memory');
  });
});

describe('timing with the real engine', () => {
  let loads: readonly ModelLoad[];
  let opened: LoadedModels;
  let runBatch: RunBatchNow;

  beforeAll(async () => {
    const tiny = await readModelFolder(goldenFolder('bert-dense'), ['embed'], 'fp32');
    const batched = await prepareModels([tiny], cacheDir);
    const runPolicy: RunPolicy = { kind: 'padded', fixedBatch: null, fixedTokens: null };
    loads = [...(await embeddedLoads()), ...batched.map((load) => ({ ...load, runPolicy }))];
    opened = await loadModels(loads, 1);
    runBatch = createRunner(opened);
  });
  afterAll(async () => {
    await releaseModels(opened);
    removeCache();
  });

  it('gives times of every head of the models that are bundled and of one whose texts share runs', async () => {
    const found = await timeHeads({ models: loads, timedHeads: [], limits: cpuRunLimits, budgetMs: 10_000 }, runBatch);
    const heads = everyHead(loads).filter(({ head }) => head !== 'maxSim');
    expect(found.map(({ modelId, head }) => ({ modelId, head }))).toEqual(heads);
    for (const [index, { timings }] of found.entries()) {
      const { modelId, head } = heads[index] ?? heads[0] ?? { modelId: '', head: 'dense' };
      const load = loads.find((one) => one.modelId === modelId);
      if (load === undefined) throw new Error(`${modelId} was not prepared`);
      expect(pairs(timings)).toEqual(pairs(timedShapes(head, load, cpuRunLimits)));
      expect(timings.every(({ ms }) => ms > 0)).toBe(true);
      const cost = fitRunCost(timings);
      if (cost === null) throw new Error('nothing was timed');
      expect(runMs(cost, { texts: 1, tokens: 256 })).toBeGreaterThan(0);
    }
  });
});
