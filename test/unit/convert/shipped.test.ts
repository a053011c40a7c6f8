/** Owns the rules of converting the models that come with the package: their values against the reference. */
import { readFileSync } from 'node:fs';
import { readdir, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { beforeAll, describe, expect, it } from 'vitest';
import { describeConverted } from '../../../src/model/convert/describe.ts';
import { quantizedManifest } from '../../../src/model/convert/quantized-manifest.ts';
import { identityOf } from '../../../src/model/manifest.ts';
import type { ModelManifest } from '../../../src/model/manifest.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import type { ModelUse } from '../../../src/model/role.ts';
import { loadTokenizer } from '../../../src/tokenize/load.ts';
import { readDocuments } from '../../support/corpus.ts';
import { cosine, maxDifference } from '../kernels/run-onnx.ts';
import { shippedModels } from '../model/model-folders.ts';
import { withFolder } from './graphs.ts';

const timeoutMs = 180_000;

/** Lines of a golden file, without the first, which says what made it. */
const golden = <Line>(file: string): Line[] =>
  readFileSync(new URL(`../../golden/data/${file}`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line) as Line);

interface GoldenTerms {
  readonly text: string;
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

const floatsOf = (base64: string): Float32Array => {
  const bytes = Uint8Array.from(Buffer.from(base64, 'base64'));
  return new Float32Array(bytes.buffer);
};

type Encode = (text: string) => Promise<Float32Array>;

/** Runs `use` with what a prepared model makes of a text. */
async function withEncoder<Result>(
  model: ModelManifest,
  cacheDir: string,
  output: string,
  use: (encode: Encode, graphPath: string) => Promise<Result>,
): Promise<Result> {
  const [load] = await prepareModels([model], cacheDir);
  const graphPath = load?.graphPath ?? '';
  const session = await InferenceSession.create(graphPath, { intraOpNumThreads: 1, logSeverityLevel: 3 });
  const tokenizer = await loadTokenizer({
    modelFolder: model.folder,
    maxTokens: model.maxTokens,
    warn: () => undefined,
  });
  try {
    return await use(async (text) => {
      const [tokenized] = await tokenizer.tokenize([text]);
      const ids = [...(tokenized?.ids ?? [])].map(BigInt);
      const values = { input_ids: ids, attention_mask: ids.map(() => 1n), token_type_ids: ids.map(() => 0n) };
      const feeds = Object.entries(values)
        .filter(([name]) => session.inputNames.includes(name))
        .map(([name, list]) => [name, new Tensor('int64', BigInt64Array.from(list), [1, list.length])] as const);
      return (await session.run(Object.fromEntries(feeds), [output]))[output]?.data as Float32Array;
    }, graphPath);
  } finally {
    await session.release();
  }
}

const read = (name: string, use: ModelUse, precision: 'fp32' | 'fp16' | 'int8'): Promise<ModelManifest> =>
  readModelFolder(join(shippedModels, name), [use], precision);

describe('shipped models, converted', { timeout: timeoutMs }, () => {
  let minilm: ModelManifest;
  let splade: ModelManifest;
  beforeAll(async () => {
    minilm = await read('all-MiniLM-L6-v2', 'embed', 'fp32');
    splade = await read('splade-tiny', 'sparseEmbed', 'fp32');
  });

  it('fp32 of a model that ships fp16 is widened, and its identity says so', () => {
    expect([minilm.precision, minilm.conversion]).toEqual(['fp32', ['widen', 'fitCpu']]);
    expect(identityOf(minilm, 'mean')).toBe(`all-MiniLM-L6-v2@${minilm.revision}:fp16->fp32:mean`);
  });

  it('a widened MiniLM gives the reference vectors with a cosine of 0.99999', async () => {
    await withFolder((cacheDir) =>
      withEncoder(minilm, cacheDir, 'trivec_dense', async (encode) => {
        for (const { text, vector } of golden<{ text: string; vector: string }>('minilm.embed.jsonl')) {
          expect(cosine(await encode(text), floatsOf(vector))).toBeGreaterThan(0.99999);
        }
      }),
    );
  });

  it('the form for a CPU gives the vectors of the widened graph to 1e-6, for texts of every length', async () => {
    const texts = golden<{ text: string }>('minilm.embed.jsonl').map(({ text }) => text);
    const vectorsOf = (model: ModelManifest): Promise<Float32Array[]> =>
      withFolder((cacheDir) =>
        withEncoder(model, cacheDir, 'trivec_dense', async (encode) => {
          const vectors: Float32Array[] = [];
          for (const text of texts) vectors.push(Float32Array.from(await encode(text)));
          return vectors;
        }),
      );
    const expected = await vectorsOf({ ...minilm, conversion: ['widen'] });
    for (const [index, vector] of (await vectorsOf(minilm)).entries()) {
      expect(maxDifference([...vector], [...(expected[index] ?? [])]), texts[index]).toBeLessThan(1e-6);
    }
  });

  it('a widened splade-tiny gives the reference weights with a cosine of 0.99999, each within 1e-2', async () => {
    await withFolder((cacheDir) =>
      withEncoder(splade, cacheDir, 'trivec_sparse', async (encode) => {
        for (const { text, indices, values } of golden<GoldenTerms>('splade.embed-sparse.jsonl')) {
          const expected = new Float32Array(splade.vocabularySize);
          for (const [at, index] of indices.entries()) expected[index] = values[at] ?? NaN;
          const weights = await encode(text);
          if (indices.length > 0) expect(cosine(weights, expected)).toBeGreaterThan(0.99999);
          expect(Math.max(...expected.map((value, at) => Math.abs(value - (weights[at] ?? NaN))))).toBeLessThan(0.01);
        }
      }),
    );
  });

  it('MiniLM, widened and narrowed again, keeps a cosine of 0.9995', async () => {
    const narrowed: ModelManifest = { ...minilm, precision: 'fp16', conversion: ['widen', 'narrow'] };
    await withFolder((cacheDir) =>
      withEncoder(narrowed, cacheDir, 'trivec_dense', async (encode, path) => {
        expect((await stat(path)).size).toBeLessThan(50e6);
        for (const { text, vector } of golden<{ text: string; vector: string }>('minilm.embed.jsonl').slice(0, 20)) {
          expect(cosine(await encode(text), floatsOf(vector))).toBeGreaterThan(0.9995);
        }
      }),
    );
  });

  it('MiniLM, quantised here, keeps a cosine of 0.99 and 0.994 in the mean on ordinary documents', async () => {
    const texts = readDocuments()
      .map(({ text }) => text)
      .filter((text, index) => text !== '' && index % 40 === 0);
    await withFolder(async (cacheDir) => {
      const expected = await withEncoder(minilm, cacheDir, 'trivec_dense', async (encode) => {
        const vectors: Float32Array[] = [];
        for (const text of texts) vectors.push(Float32Array.from(await encode(text)));
        return vectors;
      });
      const cosines = await withEncoder(quantizedManifest(minilm), cacheDir, 'trivec_dense', async (encode) => {
        const values: number[] = [];
        for (const [index, text] of texts.entries()) values.push(cosine(await encode(text), expected[index] ?? []));
        return values;
      });
      expect(cosines.length).toBeGreaterThan(30);
      expect(Math.min(...cosines)).toBeGreaterThan(0.99);
      expect(cosines.reduce((sum, value) => sum + value, 0) / cosines.length).toBeGreaterThan(0.994);
    });
  });

  it('a quantised model runs its texts one at a time, under an identity that says what was done', () => {
    const quantized = quantizedManifest(minilm);
    expect(quantized.runPolicy.kind).toBe('alone');
    expect(minilm.runPolicy.kind).toBe('padded');
    expect(identityOf(quantized, 'mean')).toBe(`all-MiniLM-L6-v2@${minilm.revision}:int8(quantized):mean`);
  });

  it('what a graph says about itself after a conversion is known without a file', () => {
    const before = describeConverted(splade.graphPath, []);
    const after = describeConverted(splade.graphPath, ['widen', 'quantize']);
    expect(after.outputs).toEqual(before.outputs);
    expect(before.operators.has('MatMulInteger')).toBe(false);
    expect(after.operators.has('MatMulInteger')).toBe(true);
  });

  describe('in the cache', () => {
    let names: readonly string[];
    let firstInode: bigint;
    let lastInode: bigint;
    let repairedBytes: number;
    let wholeBytes: number;
    beforeAll(() =>
      withFolder(async (cacheDir) => {
        const quantized = quantizedManifest(splade);
        const path = (await prepareModels([quantized], cacheDir))[0]?.graphPath ?? '';
        await prepareModels([splade, quantized], cacheDir);
        names = (await readdir(cacheDir)).sort();
        const first = await stat(path, { bigint: true });
        await Promise.all([prepareModels([quantized], cacheDir), prepareModels([quantized], cacheDir)]);
        firstInode = first.ino;
        lastInode = (await stat(path, { bigint: true })).ino;
        wholeBytes = Number(first.size);
        await truncate(path, 1000);
        await prepareModels([quantized], cacheDir);
        repairedBytes = (await stat(path)).size;
      }),
    );

    it('holds the prepared graphs and the quantised one without heads, nothing else', () => {
      const stem = `splade-tiny-${splade.sha256.slice(0, 12)}`;
      expect(names).toEqual([
        expect.stringMatching(`^${stem}-widen\\d+-expandAttention\\d+-quantize\\d+-[0-9a-f]{12}\\.onnx$`),
        expect.stringMatching(`^${stem}-widen\\d+-expandAttention\\d+-quantize\\d+\\.onnx$`),
        expect.stringMatching(`^${stem}-widen\\d+-fitCpu\\d+-[0-9a-f]{12}\\.onnx$`),
      ]);
    });

    it('a converted graph is used again without a write, and replaced where it is damaged', () => {
      expect(lastInode).toBe(firstInode);
      expect(repairedBytes).toBe(wholeBytes);
    });
  });
});
