/** Owns the check of prepared graphs against the values of the reference implementations, model by model. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { headOutputs } from '../../../src/executor/protocol.ts';
import type { AddedHead } from '../../../src/executor/protocol.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import type { ModelManifest } from '../../../src/model/manifest.ts';
import type { ModelUse } from '../../../src/model/role.ts';
import { readTensor } from '../../../src/model/weights/tensor-file.ts';
import { lookUpTerms, mergeTokenWeights } from '../../../src/tensor/token-terms.ts';
import { cosine, maxDifference, runModel } from '../kernels/run-onnx.ts';
import type { Output } from '../kernels/run-onnx.ts';
import { decodeFloats, goldenFeeds, goldenFolder, goldenModels, goldenRecords } from './golden-models.ts';
import type { GoldenRecord } from './golden-models.ts';
import { problemsOf, withFolder } from './model-folders.ts';

const useOf = (task: string): ModelUse[] => [
  ...(task.split(', ').includes('embed') ? (['embed'] as const) : []),
  ...(task.includes('embed/sparse') ? (['sparseEmbed'] as const) : []),
  ...(task.includes('embed/multi') ? (['multiVector'] as const) : []),
  ...(task.startsWith('rerank') ? (['rerank'] as const) : []),
];
const outputOf = (head: Exclude<AddedHead, 'maxSim'>): string => headOutputs[head];

/** Models that are served as they are, in float32. */
const served = goldenModels.filter(
  ({ name, expect: expected }) =>
    expected.startsWith('served') && !['bert-linear-bin', 'generative-reranker'].includes(name),
);

async function padIdOf(folder: string): Promise<number> {
  const { pad_token_id: id } = JSON.parse(await readFile(join(folder, 'config.json'), 'utf8')) as {
    pad_token_id?: number | null;
  };
  return id ?? 0;
}

/** Tokens of a record's prompt and of what the tokenizer puts before it: those that it shares with all of its kind. */
function promptTokensOf(record: GoldenRecord, records: readonly GoldenRecord[]): number {
  if ((record.prompt ?? '') === '') return 0;
  const others = records.filter(({ kind }) => kind === record.kind);
  const isShared = (index: number) => others.every(({ ids }) => ids[index] === record.ids[index]);
  return record.ids.findIndex((_, index) => !isShared(index));
}

/** One text's values of an output. */
function itemOf({ values, dims }: Output, index: number): number[] {
  const length = values.length / (dims[0] ?? 1);
  return values.slice(index * length, (index + 1) * length);
}

function checkRecord(
  manifest: ModelManifest,
  record: GoldenRecord,
  found: Readonly<Record<string, Output>>,
  index: number,
): void {
  const read = (head: Exclude<AddedHead, 'maxSim'>) => {
    const output = found[outputOf(head)];
    return output === undefined ? null : itemOf(output, index);
  };
  const [dense, sparse, rows, logit] = [read('dense'), read('sparse'), read('rows'), read('logit')];
  if (dense !== null && record.vector !== undefined) {
    const expected = decodeFloats(record.vector);
    expect(dense).toHaveLength(manifest.dimension);
    expect(cosine(dense, expected)).toBeGreaterThan(0.99999);
    expect(maxDifference(dense, expected)).toBeLessThan(manifest.isNormalized ? 1e-5 : 1e-4);
  }
  if (sparse !== null && record.indices !== undefined) {
    const ids = Int32Array.from(record.ids);
    const unweighted = new Set(manifest.sparse?.form === 'tokens' ? manifest.sparse.unweightedIds : []);
    const terms =
      manifest.sparse?.form === 'tokens'
        ? mergeTokenWeights(ids, Float32Array.from(sparse.slice(0, ids.length)), unweighted)
        : lookUpTerms(Int32Array.from(sparse.keys()), Float32Array.from(sparse));
    expect([...terms.indices]).toEqual(record.indices);
    expect(maxDifference([...terms.values], record.values ?? [])).toBeLessThan(1e-4);
  }
  if (rows !== null && record.matrix !== undefined) {
    const { rowDimension, tokenRows } = manifest;
    const all = record.ids.map((_, token) => token).filter((token) => token > 0 || tokenRows.keepsFirstRow);
    const kept = (record.keptRows ?? all).flatMap((token) =>
      rows.slice(token * rowDimension, (token + 1) * rowDimension),
    );
    const expected = decodeFloats(record.matrix);
    expect(kept).toHaveLength(expected.length);
    expect(maxDifference(kept, expected)).toBeLessThan(2e-5);
  }
  if (logit !== null && record.logits !== undefined) {
    const [first = NaN, second] = record.logits;
    expect(maxDifference(logit, [second === undefined ? first : second - first])).toBeLessThan(1e-4);
  }
}

/** Every record against the prepared graph: alone, and where the graph allows it in one padded run. */
async function checkModel(folder: string, uses: readonly ModelUse[], name: string): Promise<ModelManifest> {
  return withFolder(async (cacheDir) => {
    const manifest = await readModelFolder(folder, uses, 'fp32');
    const [load] = await prepareModels([manifest], cacheDir);
    const records = goldenRecords(name).filter(({ kind }) => manifest.sparse?.form !== 'terms' || kind !== 'query');
    const padId = await padIdOf(folder);
    const outputs = manifest.heads.filter((head) => head !== 'maxSim').map(outputOf);
    const run = async (batch: readonly GoldenRecord[]) => {
      const prompts = batch.map((record) => promptTokensOf(record, records));
      const found = await runModel(load?.graphPath ?? '', goldenFeeds(manifest, batch, padId, prompts), outputs);
      batch.forEach((record, index) => {
        checkRecord(manifest, record, found, index);
      });
    };
    expect(records.length).toBeGreaterThan(0);
    expect(Math.max(...records.map(({ ids }) => ids.length))).toBeLessThanOrEqual(manifest.maxTokens);
    for (const record of records.slice(0, 12)) await run([record]);
    if (manifest.runPolicy.kind === 'padded') await run(records);
    return manifest;
  });
}

describe('a tiny model gives the values of the reference', () => {
  it.each(served)('$name for $task', async ({ name, task }) => {
    await checkModel(goldenFolder(name), useOf(task), name);
  });

  it('cross-encoder-2, once the catalogue names the positive label', async () => {
    await withFolder(async (parent) => {
      const folder = join(parent, 'two');
      await cp(goldenFolder('cross-encoder-2'), folder, { recursive: true });
      await writeFile(join(parent, 'catalog.json'), JSON.stringify({ two: { positiveLabel: 1 } }));
      expect((await checkModel(folder, ['rerank'], 'cross-encoder-2')).positiveLabel).toBe(1);
    });
  });

  it('generative-reranker, once the catalogue gives its words', async () => {
    await withFolder(async (parent) => {
      const folder = join(parent, 'llm');
      await cp(goldenFolder('generative-reranker'), folder, { recursive: true });
      const yesNo = { yes: 'yes', no: 'no', prefix: '', body: '', suffix: '', instruction: '' };
      await writeFile(join(parent, 'catalog.json'), JSON.stringify({ llm: { yesNo } }));
      expect((await checkModel(folder, ['rerank'], 'generative-reranker')).yesNo).toMatchObject({ prefix: '' });
    });
  });

  it('a query of sparse-inference-free is looked up', async () => {
    const { sparse } = await readModelFolder(goldenFolder('sparse-inference-free'), ['sparseEmbed'], 'fp32');
    const source = sparse?.form === 'terms' ? sparse.queryTermWeights : null;
    if (source === null) throw new Error('no weights');
    const { values } = await readTensor(source);
    const queries = goldenRecords('sparse-inference-free').filter(({ kind }) => kind === 'query');
    expect(queries.length).toBeGreaterThan(0);
    for (const { ids, indices, values: expected } of queries) {
      const found = lookUpTerms(Int32Array.from(ids), values);
      expect([...found.indices]).toEqual(indices);
      expect(maxDifference([...found.values], expected ?? [])).toBeLessThan(1e-6);
    }
  });
});

describe('a tiny model that cannot be served', () => {
  it.each([
    ['bert-mystery', 'embed', '"Mystery"'],
    ['bert-linear-bin', 'embed', 'not from pytorch_model.bin'],
    ['cross-encoder-2', 'rerank', 'has 2 labels'],
    ['cross-encoder-5', 'rerank', 'has 5 labels'],
    ['generative-reranker', 'rerank', 'is a causal language model'],
    ['bge-m3', 'rerank', 'is a text encoder'],
    ['bert-dense', 'sparseEmbed', 'is a text encoder'],
  ] as const)('%s for %s is refused with its reason', async (name, use, reason) => {
    const problems = await problemsOf(readModelFolder(goldenFolder(name), [use], 'fp32'));
    expect(problems).toEqual([expect.stringContaining(reason)]);
  });
});

describe('what the files of a tiny model say', () => {
  const read = (name: string, use: ModelUse) => readModelFolder(goldenFolder(name), [use], 'fp32');

  it.each([
    ['bert-dense', 'padded', null],
    ['variant-unmasked', 'equalLength', null],
    ['variant-batch-1', 'alone', null],
    ['variant-length-32', 'padded', 32],
  ] as const)('the graph of %s may be run %s', async (name, kind, fixedTokens) => {
    expect((await read(name, 'embed')).runPolicy).toEqual({ kind, fixedBatch: null, fixedTokens });
  });

  it('dynamic int8 runs one text at a time', async () => {
    const manifest = await readModelFolder(goldenFolder('variant-precisions'), ['embed'], 'auto');
    expect(manifest.graphPath).toContain('model_quantized.onnx');
    expect(manifest.runPolicy.kind).toBe('alone');
  });

  it('the positions of XLM-R begin behind the padding id, and count off its limit', async () => {
    const manifest = await read('xlmr-dense-positions', 'embed');
    expect(manifest.inputs).toEqual({ names: ['input_ids', 'attention_mask', 'position_ids'], positionPadId: 1 });
    expect(manifest.maxTokens).toBe(64);
    expect((await read('decoder-dense-positions', 'embed')).inputs.positionPadId).toBeNull();
  });

  it('a fixed length is a limit', async () => {
    expect((await read('variant-length-32', 'embed')).maxTokens).toBe(32);
  });

  it('the length of a vector is known before the first run', async () => {
    expect((await read('bert-linear', 'embed')).dimension).toBe(12);
    expect(await read('bert-pool-cls-mean', 'embed')).toMatchObject({ dimension: 32, pooling: 'cls+mean' });
    expect((await read('colbert-pylate', 'multiVector')).rowDimension).toBe(8);
    expect((await read('colbert-original', 'multiVector')).rowDimension).toBe(8);
  });

  it('late interaction has its markers, lengths, expansion and skip list from PyLate', async () => {
    const { tokenRows } = await read('colbert-pylate', 'multiVector');
    expect(tokenRows).toMatchObject({
      queryMarker: '[Q] ',
      documentMarker: '[D] ',
      maxQueryTokens: 32,
      expansionToken: '[MASK]',
      isExpansionAttended: false,
      keepsFirstRow: true,
    });
    expect(tokenRows.documentSkipTokens).toHaveLength(32);
    expect((await read('colbert-pylate-attending', 'multiVector')).tokenRows.isExpansionAttended).toBe(true);
    expect((await read('colbert-pylate-unexpanded', 'multiVector')).tokenRows.expansionToken).toBeNull();
  });

  it('late interaction has its markers and lengths from the original ColBERT', async () => {
    expect((await read('colbert-original', 'multiVector')).tokenRows).toMatchObject({
      queryMarker: '[unused0]',
      documentMarker: '[unused1]',
      maxQueryTokens: 32,
      expansionToken: '[MASK]',
    });
  });

  it('bge-m3 leaves out the first row and gives special tokens no weight', async () => {
    const { tokenRows, sparse } = await read('bge-m3', 'sparseEmbed');
    expect(tokenRows.keepsFirstRow).toBe(false);
    expect(sparse).toMatchObject({ form: 'tokens', unweightedIds: [0, 2, 3, 1] });
  });

  it('a prompt may be left out of the pooling', async () => {
    expect((await read('bert-prompts-excluded', 'embed')).includesPrompt).toBe(false);
    expect((await read('bert-prompts', 'embed')).includesPrompt).toBe(true);
  });

  it('lengths that a vector may be cut to come from config.json', async () => {
    const { isMatryoshka, matryoshka } = await read('bert-matryoshka', 'embed');
    expect({ isMatryoshka, ...matryoshka }).toEqual({ isMatryoshka: true, dimensions: [4, 8, 16], isCentered: false });
  });
});
