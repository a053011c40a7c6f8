import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRunner } from '../../src/executor/run.ts';
import { loadModels, releaseModels } from '../../src/executor/session.ts';
import type { LoadedModels } from '../../src/executor/session.ts';
import type { Head, Matrix, RunBatch, RunItem, RunRow } from '../../src/executor/protocol.ts';
import { proofRunsOf } from '../../src/proof.ts';
import { loadTokenizer } from '../../src/tokenize/load.ts';
import { cacheDir, endDevices, removeCache, run, startDevice, wholeRows } from '../unit/executor/real-device.ts';
import type { Device } from '../unit/executor/real-device.ts';
import { decodeFloats } from '../unit/model/golden-models.ts';
import { expectGolden, goldenScores, hasGolden, prepareTinyModels, tinyCases, tinyId } from './tiny-rows.ts';
import type { TinyModel } from './tiny-rows.ts';

/** Runs one batch and gives its rows. */
type RunRows = (batch: RunBatch) => Promise<readonly RunRow[]>;

let models: readonly TinyModel[];
let device: Device;
let loaded: LoadedModels;

beforeAll(async () => {
  models = await prepareTinyModels(cacheDir);
  const loads = models.map(({ load }) => load);
  const started = await startDevice({ loads });
  expect(started.failures).toEqual([]);
  device = started;
  loaded = await loadModels(loads, 1);
});
afterAll(async () => {
  await endDevices();
  await releaseModels(loaded);
  removeCache();
});

const served: RunRows = async (batch) => wholeRows(await run(device, batch));
const padded: RunRows = async (batch) =>
  wholeRows(await createRunner(loaded, { maxRunTokens: 2048, isPaddingCheap: true })(batch));

function modelOf(modelId: string): TinyModel {
  const model = models.find((one) => one.modelId === modelId);
  if (model === undefined) throw new Error(`${modelId} was not prepared`);
  return model;
}

/** Every record with a golden value, one text a batch or all in one, for every head of the model. */
async function checkModel(model: TinyModel, runRows: RunRows, size: 'alone' | 'together'): Promise<void> {
  for (const head of model.manifest.heads.filter((one) => one !== 'maxSim')) {
    const known = model.records.flatMap((record, index) => {
      const item = model.items[index];
      return item !== undefined && hasGolden(record, head) ? [{ record, item }] : [];
    });
    expect(known.length).toBeGreaterThan(1);
    const batches = size === 'together' ? [known] : known.map((one) => [one]);
    for (const batch of batches) {
      const rows = await runRows(
        batchOf(
          model.modelId,
          head,
          batch.map(({ item }) => item),
        ),
      );
      for (const [index, { record }] of batch.entries()) {
        const row = rows[index];
        if (row === undefined) throw new Error('a row is missing');
        expectGolden(model, head, record, row);
      }
    }
  }
}

const batchOf = (
  modelId: string,
  head: Head,
  items: readonly RunItem[],
  queryRows: Matrix | null = null,
): RunBatch => ({ modelId, head, items, queryRows });

describe('every tiny model in an executor process gives the golden values', () => {
  it.each(tinyCases)('%s in %s, each text alone', async (name, precision) => {
    await checkModel(modelOf(tinyId(name, precision)), served, 'alone');
  });

  it.each(tinyCases)('%s in %s, texts of all lengths in one batch', async (name, precision) => {
    await checkModel(modelOf(tinyId(name, precision)), served, 'together');
  });
});

describe('every tiny model on a device where padding is cheap gives the golden values', () => {
  it.each(tinyCases)('%s in %s, padded where its policy allows it', async (name, precision) => {
    await checkModel(modelOf(tinyId(name, precision)), padded, 'together');
  });
});

describe('every tiny model proves itself, alone against in company', () => {
  it.each(tinyCases)('%s in %s', async (name, precision) => {
    const { manifest } = modelOf(tinyId(name, precision));
    const { folder: modelFolder, maxTokens } = manifest;
    const tokenizer = await loadTokenizer({ modelFolder, maxTokens, warn: () => undefined });
    const proofs = await proofRunsOf(manifest, tokenizer);
    const isShared = manifest.runPolicy.kind !== 'alone';
    // For each head its own answer, and twice in company; for the model its longest text.
    expect(proofs).toHaveLength(manifest.heads.length * (isShared ? 3 : 1) + 1);
    for (const runRows of [served, padded]) {
      for (const proof of proofs) expect(proof.judge(await runRows(proof.batch))).toBeNull();
    }
  });
});

describe('MaxSim in an executor process', () => {
  it.each(['colbert-pylate', 'colbert-original', 'bge-m3'])('of %s gives the golden sums', async (name) => {
    const model = modelOf(tinyId(name, 'fp32'));
    const golden = goldenScores(name);
    expect(golden.length).toBeGreaterThan(0);
    for (const { query, passages, scores } of golden) {
      const dimension = model.manifest.rowDimension;
      const queryRows = { values: Float32Array.from(decodeFloats(query.matrix ?? '')), dimension };
      const indexOf = (text: string | undefined) =>
        model.records.findIndex(
          (record) => record.text === text && record.kind !== 'query' && hasGolden(record, 'rows'),
        );
      const items = passages.flatMap(({ text }) => model.items[indexOf(text)] ?? []);
      const rows = await served(batchOf(model.modelId, 'maxSim', items, queryRows));
      expect(rows).toHaveLength(scores.length);
      for (const [index, score] of scores.entries()) expect(rows[index]?.values[0]).toBeCloseTo(score, 4);
    }
  });
});

describe('a tiny model in an executor process', () => {
  it('in int8 gives the same bits alone and in company', async () => {
    const { modelId, items } = modelOf('variant-precisions-int8');
    const together = await served(batchOf(modelId, 'dense', items));
    for (const [index, item] of items.entries()) {
      expect((await served(batchOf(modelId, 'dense', [item])))[0]).toEqual(together[index]);
    }
  });

  it.each([
    ['an id of -1', [2, -1, 3]],
    ['an id behind the vocabulary', [2, 100_000, 3]],
    ['a text longer than the fixed length', Array<number>(33).fill(7)],
  ])('refuses %s before the run, and goes on', async (_name, ids) => {
    const model = modelOf('variant-length-32-fp32');
    const bad: RunItem = { ids: Int32Array.from(ids), typeIds: null, keptRows: null };
    await expect(served(batchOf(model.modelId, 'dense', [...model.items, bad]))).rejects.toThrow('item 12');
    await checkModel(model, served, 'alone');
  });
});
