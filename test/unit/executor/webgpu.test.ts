import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Conversation, LoadAnswer } from '../../../src/device/conversation.ts';
import { everyHead } from '../../../src/device/warm-up.ts';
import type { Head, ModelLoad, ProviderChoice, RunBatch, RunItem, RunRow } from '../../../src/executor/protocol.ts';
import { convertFile } from '../../../src/model/convert/converted-file.ts';
import { encodeHeads } from '../../../src/model/heads.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { expectGolden, goldenScores, hasGolden, prepareTinyModels } from '../../golden/tiny-rows.ts';
import type { TinyModel } from '../../golden/tiny-rows.ts';
import { softwareAdapter, webgpuRequirement, webgpuTolerance } from '../../support/webgpu.ts';
import { maxDifference } from '../kernels/run-onnx.ts';
import { decodeFloats } from '../model/golden-models.ts';
import { endExecutors, openExecutor } from './open-executor.ts';
import { cacheDir, removeCache, wholeRows } from './real-device.ts';

const webgpu = webgpuRequirement();
const onWebgpu: ProviderChoice = { name: 'webgpu', deviceIndex: 0 };
const onCpu: ProviderChoice = { name: 'cpu', deviceIndex: 0 };

/** A model for every head and every form of graph; the ways to pool are checked with the kernels. */
const names = [
  'bert-dense',
  'bert-prompts-excluded',
  'bert-splade',
  'bge-m3',
  'colbert-pylate',
  'cross-encoder-2',
  'decoder-dense',
  'variant-batch-1',
  'xlmr-dense-positions',
].map((name) => `${name}-fp32`);
/** The sparse model with outputs for its heaviest terms, which texts have fewer and more of. */
const topName = 'bert-splade-top';
const topTerms = 100;
/** Its attention with a mask is none of WebGPU's. */
const fusedName = 'variant-fused-attention-fp32';

let models: ReadonlyMap<string, TinyModel>;
let loads: readonly ModelLoad[];
let device: Conversation;
let reference: Conversation;
let loaded: LoadAnswer;

beforeAll(async () => {
  if (webgpu.skip) return;
  const tiny = await prepareTinyModels(cacheDir);
  models = new Map(tiny.map((model) => [model.modelId, model]));
  const manifests = tiny.map(({ manifest }) => manifest);
  loads = await prepareModels(manifests, cacheDir, { kind: 'webgpu', hasFloat16: false, arch: process.arch });
  const served = [...[...names, fusedName].map(loadOf), await loadWithTopTerms()];
  reference = openExecutor();
  await reference.load(served, 1, onCpu, everyHead(served));
  device = openExecutor(softwareAdapter);
  loaded = await device.load(served, 1, onWebgpu, []);
}, 120_000);
afterAll(async () => {
  await endExecutors();
  removeCache();
});

function modelOf(modelId: string): TinyModel {
  const model = models.get(modelId);
  if (model === undefined) throw new Error(`${modelId} was not prepared`);
  return model;
}

function loadOf(modelId: string): ModelLoad {
  const load = loads.find((one) => one.modelId === modelId);
  if (load === undefined) throw new Error(`${modelId} was not prepared`);
  return load;
}

/** The rows on WebGPU, after they were found to be those of the CPU. */
async function rowsOf(batch: RunBatch): Promise<readonly RunRow[]> {
  const rows = wholeRows(await device.run(batch).answer);
  expectSameRows(rows, wholeRows(await reference.run(batch).answer));
  return rows;
}

function expectSameRows(found: readonly RunRow[], expected: readonly RunRow[]): void {
  expect(found).toHaveLength(expected.length);
  for (const [index, row] of found.entries()) {
    const other = expected[index];
    expect([...(row.indices ?? [])]).toEqual([...(other?.indices ?? [])]);
    expect(maxDifference([...row.values], [...(other?.values ?? [])])).toBeLessThan(webgpuTolerance);
  }
}

async function loadWithTopTerms(): Promise<ModelLoad> {
  const [{ manifest }, load] = [modelOf('bert-splade-fp32'), loadOf('bert-splade-fp32')];
  const { graph } = await convertFile(manifest.graphPath, [], topName);
  const graphPath = join(cacheDir, `${topName}.onnx`);
  const heads = encodeHeads(graph, manifest, new Map(), { topTerms });
  await writeFile(graphPath, Buffer.concat([await readFile(manifest.graphPath), heads]));
  return { ...load, modelId: topName, graphPath, sparse: { form: 'terms', unweightedIds: [], topTerms } };
}

const batchOf = (modelId: string, head: Head, items: readonly RunItem[]): RunBatch => ({
  modelId,
  head,
  items,
  queryRows: null,
});

describe.skipIf(webgpu.skip)(webgpu.title('an executor on WebGPU'), { timeout: 120_000 }, () => {
  it('says that it runs there, and which nodes that compute do not', () => {
    expect(loaded.executionProvider).toBe('webgpu');
    expect(loaded.placements).toEqual([
      ...names.map((modelId) => ({ modelId, foreignNodes: [] })),
      { modelId: fusedName, foreignNodes: ['Attention_0 (Attention)', 'Attention_1 (Attention)'] },
      { modelId: topName, foreignNodes: [] },
    ]);
  });

  it('gives the same terms where only the heaviest are copied, and all where a text has more', async () => {
    const { items } = modelOf('bert-splade-fp32');
    const full = await reference.run(batchOf('bert-splade-fp32', 'sparse', items)).answer;
    const rows = wholeRows(await device.run(batchOf(topName, 'sparse', items)).answer);
    expectSameRows(rows, wholeRows(full));
    const counts = rows.map(({ values }) => values.length);
    expect(Math.min(...counts)).toBeLessThan(topTerms);
    expect(Math.max(...counts)).toBeGreaterThan(topTerms);
  });

  it.each(names)('gives the golden values and those of the CPU: %s', async (name) => {
    const model = modelOf(name);
    for (const head of model.manifest.heads.filter((one) => one !== 'maxSim')) {
      const known = model.records.flatMap((record, index) => {
        const item = model.items[index];
        return item !== undefined && hasGolden(record, head) ? [{ record, item }] : [];
      });
      expect(known.length).toBeGreaterThan(1);
      const together = known.map(({ item }) => item);
      const rows = await rowsOf(batchOf(name, head, together));
      for (const [index, { record }] of known.entries()) {
        const row = rows[index];
        if (row === undefined) throw new Error('a row is missing');
        expectGolden(model, head, record, row);
      }
      const [first] = known;
      if (first === undefined) continue;
      const [alone] = await rowsOf(batchOf(name, head, [first.item]));
      expect(maxDifference([...(alone?.values ?? [])], [...(rows[0]?.values ?? [])])).toBeLessThan(webgpuTolerance);
    }
  });

  it('gives the golden sums of MaxSim', async () => {
    const { modelId, manifest, records, items } = modelOf('colbert-pylate-fp32');
    const golden = goldenScores('colbert-pylate');
    expect(golden.length).toBeGreaterThan(0);
    for (const { query, passages, scores } of golden) {
      const queryRows = {
        values: Float32Array.from(decodeFloats(query.matrix ?? '')),
        dimension: manifest.rowDimension,
      };
      const texts = passages.flatMap(
        ({ text }) =>
          items[records.findIndex((one) => one.text === text && one.kind !== 'query' && hasGolden(one, 'rows'))] ?? [],
      );
      const rows = await rowsOf({ ...batchOf(modelId, 'maxSim', texts), queryRows });
      expect(
        rows.map(({ values }) => values[0]).map((sum, index) => Math.abs((sum ?? NaN) - (scores[index] ?? NaN))),
      ).toSatisfy(
        (differences: number[]) =>
          differences.length === scores.length && differences.every((one) => one < webgpuTolerance),
      );
    }
  });

  it('refuses an id that is none before the device sees it, says its memory, and goes on', async () => {
    const bad: RunItem = { ids: Int32Array.of(2, 100_000), typeIds: null, keptRows: null };
    await expect(device.run(batchOf('bert-dense-fp32', 'dense', [bad])).answer).rejects.toMatchObject({
      kind: 'runFailed',
    });
    const { rows, residentBytes } = await device.run(
      batchOf('bert-dense-fp32', 'dense', modelOf('bert-dense-fp32').items),
    ).answer;
    expect(rows).toHaveLength(modelOf('bert-dense-fp32').items.length);
    expect(residentBytes).toBeGreaterThan(50_000_000);
  });
});

describe.skipIf(webgpu.skip)(webgpu.title('an executor that cannot run on WebGPU'), () => {
  it.each([
    ['without an adapter', { VK_ICD_FILENAMES: '/nowhere.json' }, 'bert-dense-fp32', onWebgpu, 'adapter'],
    ['with an int8 graph', softwareAdapter, 'variant-precisions-int8', onWebgpu, 'int8, which runs on the CPU only'],
    [
      'on its second adapter',
      softwareAdapter,
      'bert-dense-fp32',
      { ...onWebgpu, deviceIndex: 1 },
      'first WebGPU adapter',
    ],
  ])('%s says so and lives on', async (_name, environment, modelId, provider, reason) => {
    const executor = openExecutor(environment);
    await expect(executor.load([loadOf(modelId)], 1, provider, [])).rejects.toThrow(reason);
    expect((await executor.load([loadOf(modelId)], 1, onCpu, [])).executionProvider).toBe('cpu');
  });
});
