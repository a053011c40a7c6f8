import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRunner, type RunBatchNow } from '../../src/executor/run.ts';
import { loadModels, releaseModels, type LoadedModels } from '../../src/executor/session.ts';
import type { RunItem, RunRow } from '../../src/executor/protocol.ts';
import type { ModelManifest, Precision } from '../../src/model/manifest.ts';
import { prepareModels } from '../../src/model/prepare.ts';
import { readModelFolder } from '../../src/model/read-folder.ts';
import type { Scheduler } from '../../src/schedule/scheduler.ts';
import { emptyGauges } from '../../src/schedule/item.ts';
import type { ServedModel } from '../../src/task/context.ts';
import { embed } from '../../src/task/embed.ts';
import { hiddenRows } from '../../src/task/hidden-rows.ts';
import { openServedModel } from '../../src/task/served-model.ts';
import { loadMinilm, minilmFolder } from '../unit/tokenize/minilm.ts';
import { intTensor, maxDifference, runModel } from '../unit/kernels/run-onnx.ts';
import { goldenFolder, goldenRecords } from '../unit/model/golden-models.ts';
import { cacheDir, endDevices, removeCache, run, startDevice, wholeRows } from '../unit/executor/real-device.ts';
import { contextOf } from '../unit/task/fakes.ts';
import { readGolden, type GoldenDense } from './golden-values.ts';

const bound = { maxAnswerBytes: 1e9, maxRowBytes: 1 };

let manifest: ModelManifest;
let loaded: LoadedModels;
let runBatch: RunBatchNow;
let served: ServedModel;

beforeAll(async () => {
  manifest = await readModelFolder(minilmFolder, ['embed', 'multiVector'], 'int8');
  loaded = await loadModels(await prepareModels([manifest], cacheDir), 1);
  runBatch = createRunner(loaded);
  served = await openServedModel(manifest, await loadMinilm(), 'minilm');
});
afterAll(async () => {
  await releaseModels(loaded);
  removeCache();
});

async function rowsOf(runNow: RunBatchNow, ...[batch]: Parameters<RunBatchNow>): Promise<RunRow[]> {
  const { rows } = await runNow(batch);
  return rows.map((row) => {
    if (row === null) throw new Error('a row is missing');
    return row;
  });
}

/** Runs each job at once on the loaded model. */
const scheduler: Scheduler = {
  admit: () => ({
    async run({ key, items }) {
      const rows = await rowsOf(runBatch, { ...key, items });
      return { rows, queueMs: 0, computeMs: 0, device: 'cpu:0' };
    },
    release: () => undefined,
  }),
  gauges: emptyGauges(),
  predictedDrainMs: () => 0,
};

const golden = readGolden<GoldenDense>('minilm.embed');
const inputOf = (texts: readonly string[]) => ({ texts, kind: null, field: 'inputs' });

function meanAndNormalize(values: Float32Array, dimension: number): Float32Array {
  const sums = new Float64Array(dimension);
  values.forEach((value, index) => (sums[index % dimension] = (sums[index % dimension] ?? 0) + value));
  const length = Math.hypot(...sums);
  return Float32Array.from(sums, (sum) => sum / length);
}

describe('the rows of the embedded model before any pooling', () => {
  it('are one per token, special ones included, and their mean, scaled to length 1, is the vector of embed', async () => {
    const texts = golden.map(({ text }) => text);
    const { matrices, dimension, tokenCounts, usage } = await hiddenRows(
      served,
      inputOf(texts),
      bound,
      contextOf(scheduler),
    );
    const { vectors } = await embed(served, inputOf(texts), null, contextOf(scheduler));
    expect(tokenCounts).toEqual(golden.map(({ ids }) => ids.length));
    expect(usage.inputTokens).toBe(tokenCounts.reduce((sum, count) => sum + count, 0));
    expect(matrices.map(({ values }) => values.length / dimension)).toEqual(tokenCounts);
    for (const [index, { values }] of matrices.entries()) {
      const pooled = meanAndNormalize(values, dimension);
      expect(maxDifference([...pooled], [...(vectors[index] ?? [])]), texts[index]).toBeLessThan(1e-6);
    }
  });

  it('are the last_hidden_state of the graph as it was published', async () => {
    for (const { text, ids } of golden.slice(0, 8)) {
      const { matrices } = await hiddenRows(served, inputOf([text]), bound, contextOf(scheduler));
      const feeds = {
        input_ids: intTensor([ids]),
        attention_mask: intTensor([ids.map(() => 1)]),
        token_type_ids: intTensor([ids.map(() => 0)]),
      };
      const { last_hidden_state: expected } = await runModel(manifest.graphPath, feeds, ['last_hidden_state']);
      expect(expected?.dims).toEqual([1, ids.length, manifest.hiddenSize]);
      expect(maxDifference([...(matrices[0]?.values ?? [])], expected?.values ?? [])).toBeLessThan(1e-5);
    }
  });

  it('are read from the very pass that gives the vector, where both are asked for at once', async () => {
    const item: RunItem = { ids: Int32Array.from(golden[0]?.ids ?? []), typeIds: null, keptRows: null };
    const common = { modelId: manifest.modelId, queryRows: null };
    const sharing = { ...item, sharedHeads: [{ head: 'hidden', keptRows: null } as const] };
    const [both] = await rowsOf(runBatch, { ...common, head: 'dense', items: [sharing] });
    const [alone] = await rowsOf(runBatch, { ...common, head: 'hidden', items: [item] });
    expect(both?.shared).toEqual([alone]);
  });

  it('come from an executor process as they are', async () => {
    const loads = [...loaded.values()].map(({ load }) => load);
    const device = await startDevice({ loads });
    try {
      expect(device.failures).toEqual([]);
      const items = golden.slice(0, 4).map(({ ids }): RunItem => {
        return { ids: Int32Array.from(ids), typeIds: null, keptRows: null };
      });
      const batch = { modelId: manifest.modelId, head: 'hidden' as const, items, queryRows: null };
      expect(wholeRows(await run(device, batch))).toEqual(await rowsOf(runBatch, batch));
    } finally {
      await endDevices();
    }
  });

  it('cost nothing: the prepared graph is that of a model that does not offer them', async () => {
    const { hiddenOutput, ...without } = manifest;
    expect(hiddenOutput).toBe('last_hidden_state');
    const [load] = await prepareModels([without], cacheDir);
    expect(load?.graphPath).toBe(loaded.get(manifest.modelId)?.load.graphPath);
  });
});

/** A tiny model in an executor's session, and what is run on it. */
async function openTiny(name: string, precision: Precision | 'auto' = 'fp32') {
  const tiny = await readModelFolder(goldenFolder(name), ['embed'], precision);
  const models = await loadModels(await prepareModels([tiny], cacheDir), 1);
  const items = goldenRecords(name)
    .slice(0, 6)
    .map(({ ids, typeIds }): RunItem => {
      return {
        ids: Int32Array.from(ids),
        typeIds: typeIds === undefined ? null : Uint8Array.from(typeIds),
        keptRows: null,
      };
    });
  return { tiny, models, batch: { modelId: tiny.modelId, head: 'hidden' as const, items, queryRows: null } };
}

describe('models of other kinds', () => {
  it.each([
    ['bert-dense', 'fp32', 1e-6],
    ['bert-linear', 'fp32', 1e-6],
    ['decoder-dense-positions', 'fp32', 1e-6],
    ['variant-precisions', 'fp16', 2e-3],
  ] as const)(
    '%s in %s: padded rows of texts that run together are those of each alone',
    async (name, precision, most) => {
      const { tiny, models, batch } = await openTiny(name, precision);
      try {
        const together = await rowsOf(createRunner(models, { maxRunTokens: 2048, isPaddingCheap: true }), batch);
        for (const [index, item] of batch.items.entries()) {
          const [alone] = await rowsOf(createRunner(models), { ...batch, items: [item] });
          expect(alone?.values).toHaveLength(item.ids.length * tiny.hiddenSize);
          expect(maxDifference([...(alone?.values ?? [])], [...(together[index]?.values ?? [])])).toBeLessThan(most);
        }
      } finally {
        await releaseModels(models);
      }
    },
  );

  it('a graph that gives pooled vectors only does not offer them, and neither does a model that does not embed', async () => {
    const { models, batch } = await openTiny('bge-m3-heads');
    try {
      expect(models.get(batch.modelId)?.load.hiddenOutput).toBeUndefined();
      await expect(createRunner(models)(batch)).rejects.toThrow('has no head hidden');
    } finally {
      await releaseModels(models);
    }
    const ranking = await readModelFolder(goldenFolder('colbert-pylate'), ['multiVector'], 'fp32');
    expect(ranking.hiddenOutput).toBeUndefined();
  });
});
