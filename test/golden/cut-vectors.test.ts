/** Owns the check of vectors that are cut on request against those that the reference cuts, in every form. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { readModelFolder } from '../../src/model/read-folder.ts';
import { openServedModel } from '../../src/task/served-model.ts';
import { quantize } from '../../src/tensor/quantize.ts';
import { maxDifference } from '../unit/kernels/run-onnx.ts';
import { decodeFloats, goldenFolder } from '../unit/model/golden-models.ts';
import { createHarness } from '../unit/rpc/harness.ts';
import type { Harness } from '../unit/rpc/harness.ts';
import { createFakeScheduler } from '../unit/task/fakes.ts';
import { loadQuietly } from '../unit/tokenize/minilm.ts';

const name = 'bert-matryoshka';

interface CutRecord {
  readonly text: string;
  readonly ids: readonly number[];
  readonly vector: string;
  readonly vector8: string;
  readonly vector4: string;
}

const [, ...lines] = readFileSync(new URL(`tiny/golden/${name}.jsonl`, import.meta.url), 'utf8')
  .trim()
  .split('\n');
const records = lines.map((line) => JSON.parse(line) as CutRecord);
const inputs = records.slice(0, 4).map(({ text }) => text);

/** What the reference gives for a text, cut to each length that the model allows. */
const cuts = [
  [4, ({ vector4 }: CutRecord) => decodeFloats(vector4)],
  [8, ({ vector8 }: CutRecord) => decodeFloats(vector8)],
  [16, ({ vector }: CutRecord) => decodeFloats(vector)],
] as const;

describe('vectors that are cut', () => {
  let harness: Harness;
  beforeAll(async () => {
    const manifest = await readModelFolder(goldenFolder(name), ['embed'], 'fp32');
    const served = await openServedModel(manifest, await loadQuietly(manifest.folder, manifest.maxTokens), name);
    const byIds = new Map(records.map((record) => [record.ids.join(), decodeFloats(record.vector)]));
    const scheduler = createFakeScheduler(({ ids }) => ({
      values: Float32Array.from(byIds.get(ids.join()) ?? []),
      indices: null,
    }));
    harness = createHarness({ embed: [served], sparseEmbed: [], multiVector: [], rerankers: [] }, scheduler);
  });

  const embed = async (dimensions: number, encoding: 'json' | 'f32-base64', output: 'float32' | 'int8') => {
    const params = { inputs, encoding, 'x-trivec': { dimensions, output } };
    const { result } = await harness.call('embed', params);
    expect(result).toMatchObject({ dimension: dimensions, encoding });
    return result?.['vectors'];
  };

  it.each(cuts)('to %i values are the ones of the reference, of length 1', async (dimensions, expectedOf) => {
    const vectors = (await embed(dimensions, 'json', 'float32')) as number[][];
    expect(vectors).toHaveLength(inputs.length);
    for (const [index, vector] of vectors.entries()) {
      expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
      expect(maxDifference(vector, expectedOf(records[index] as CutRecord))).toBeLessThan(1e-5);
    }
  });

  it.each(cuts)('to %i values are the same in base64, and in int8 of those', async (dimensions) => {
    const vectors = (await embed(dimensions, 'json', 'float32')) as number[][];
    const blobs = (await embed(dimensions, 'f32-base64', 'float32')) as string[];
    const floats = vectors.map((vector) => Float32Array.from(vector));
    expect(blobs.map((blob) => Float32Array.from(decodeFloats(blob)))).toEqual(floats);
    // JSON has one zero only.
    const integers = floats.map((vector) => Array.from(quantize(vector, 'int8'), (value) => value + 0));
    expect(await embed(dimensions, 'json', 'int8')).toEqual(integers);
  });
});
