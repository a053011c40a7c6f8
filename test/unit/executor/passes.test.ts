import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ModelLoad, RunItem, RunRow, RunPolicy } from '../../../src/executor/protocol.ts';
import { createRunner } from '../../../src/executor/run.ts';
import { loadModels, releaseModels } from '../../../src/executor/session.ts';
import type { LoadedModel, LoadedModels } from '../../../src/executor/session.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import { goldenFolder } from '../model/golden-models.ts';
import { maxDifference } from '../kernels/run-onnx.ts';
import { batchOf, cacheDir, embeddedSparse, removeCache, textOf, wholeRows } from './real-device.ts';

const gpu = { kind: 'cuda', hasFloat16: true, arch: 'x64' } as const;
let loads: readonly ModelLoad[];
const opened: LoadedModels[] = [];

beforeAll(async () => {
  const tiny = await readModelFolder(goldenFolder('bert-dense'), ['embed'], 'fp32');
  const [plain] = await prepareModels([embeddedSparse()], cacheDir);
  const [top] = await prepareModels([embeddedSparse()], cacheDir, gpu);
  const [dense] = await prepareModels([tiny], cacheDir);
  loads = [plain, top, dense].flatMap((load) => load ?? []);
});
afterAll(async () => {
  for (const models of opened) await releaseModels(models);
  removeCache();
});

/** A loaded model, and what each pass through its graph was given. */
async function openModel(load: ModelLoad | undefined) {
  const models = load === undefined ? new Map<string, LoadedModel>() : await loadModels([load], 1);
  opened.push(models);
  const [model] = models.values();
  if (model === undefined) throw new Error('the model was not prepared');
  const run = vi.spyOn(model.session, 'run');
  return {
    runBatch: createRunner(models),
    sizes: () => run.mock.calls.map(([feeds]) => feeds['input_ids']?.dims),
    outputs: () => run.mock.calls.map(([, names]) => names),
  };
}

const tinyText = (tokens: number, seed: number): RunItem => ({
  ids: Int32Array.from({ length: tokens }, (_, position) => 5 + ((seed * 31 + position * 17) % 300)),
  typeIds: null,
  keptRows: null,
});
const numbers = (row: RunRow | undefined) => [...(row?.values ?? [])];

describe('the heaviest terms of a device', () => {
  it('give the row of all weights, which is asked for only where a text has more terms', async () => {
    const [plain, top] = await Promise.all([openModel(loads[0]), openModel(loads[1])]);
    expect(loads[1]?.sparse?.topTerms).toBe(1024);
    const items = [textOf(3, 1), textOf(400, 2)];
    const batch = batchOf('sparse', items);
    const rows = wholeRows(await plain.runBatch(batch));
    const [few = 0, many = 0] = rows.map(({ values }) => values.length);
    expect(few).toBeLessThan(1024);
    expect(many).toBeGreaterThan(1024);
    expect((await top.runBatch(batch)).rows).toEqual(rows);
    const heaviest = ['trivec_sparse_top_weights', 'trivec_sparse_top_ids'];
    expect(top.outputs()).toEqual([heaviest, heaviest, ['trivec_sparse']]);
  });
});

describe('the passes of a batch through a real graph', () => {
  const items = [9, 4, 9, 20, 4, 4].map(tinyText);

  it.each([
    ['alone', {}, [9, 4, 9, 20, 4, 4].map((tokens) => [1, tokens])],
    [
      'equalLength',
      {},
      [
        [1, 20],
        [2, 9],
        [3, 4],
      ],
    ],
    [
      'padded',
      {},
      [
        [1, 20],
        [2, 9],
        [3, 4],
      ],
    ],
    [
      'padded',
      { fixedBatch: 4 },
      [
        [4, 20],
        [4, 4],
      ],
    ],
    ['padded', { fixedTokens: 24 }, [[6, 24]]],
    ['alone', { fixedBatch: 2, fixedTokens: 24 }, Array<number[]>(6).fill([2, 24])],
  ] as const)('%s %j are %j, and give the values of each text alone', async (kind, fixed, expected) => {
    const load = loads[2];
    if (load === undefined) throw new Error('the model was not prepared');
    const runPolicy: RunPolicy = { kind, fixedBatch: null, fixedTokens: null, ...fixed };
    const alone = await openModel({ ...load, runPolicy: { kind: 'alone', fixedBatch: null, fixedTokens: null } });
    const model = await openModel({ ...load, runPolicy });
    const batch = { modelId: load.modelId, head: 'dense', items, queryRows: null } as const;
    const rows = wholeRows(await model.runBatch(batch));
    expect(model.sizes()).toEqual(expected);
    const reference = wholeRows(await alone.runBatch(batch));
    expect(rows).toHaveLength(items.length);
    for (const [index, row] of rows.entries()) {
      expect(maxDifference(numbers(row), numbers(reference[index]))).toBeLessThan(1e-5);
    }
    expect(new Set(rows.map((row) => row.values[0])).size).toBe(items.length);
  });

  it('are left out where all of their texts were skipped, and only then', async () => {
    const load = loads[2];
    if (load === undefined) throw new Error('the model was not prepared');
    const model = await openModel({ ...load, runPolicy: { kind: 'padded', fixedBatch: 4, fixedTokens: null } });
    const batch = { modelId: load.modelId, head: 'dense', items, queryRows: null } as const;
    const whole = await model.runBatch(batch);
    expect(whole.paddedTokens).toBe(4 * 20 + 4 * 4);
    // The last two have a pass of their own; the first shares one with the longest.
    const part = await model.runBatch(batch, new Set([0, 4, 5]));
    expect(part.paddedTokens).toBe(4 * 20);
    expect(part.rows).toEqual([...whole.rows.slice(0, 4), null, null]);
    const nothing = await model.runBatch(batch, new Set(items.keys()));
    expect(nothing).toEqual({ rows: Array<null>(6).fill(null), computeMs: 0, paddedTokens: 0 });
    expect(model.sizes()).toEqual([
      [4, 20],
      [4, 4],
      [4, 20],
    ]);
  });

  it('fail as a whole where one of them fails', async () => {
    const load = loads[2];
    if (load === undefined) throw new Error('the model was not prepared');
    // 64 positions: the graph itself refuses a text of 65 tokens.
    const model = await openModel({ ...load, maxTokens: 100 });
    const batch = {
      modelId: load.modelId,
      head: 'dense',
      items: [tinyText(4, 1), tinyText(65, 2)],
      queryRows: null,
    } as const;
    await expect(model.runBatch(batch)).rejects.toThrow();
    expect((await model.runBatch({ ...batch, items: [tinyText(4, 1)] })).rows).toHaveLength(1);
  });
});
