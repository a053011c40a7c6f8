/** Owns the rules of converting real exports: small models of several families, some fused by the engine's optimiser. */
import { fileURLToPath } from 'node:url';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { cosine, maxDifference } from '../kernels/run-onnx.ts';
import { convertedFile, countOperators } from './graphs.ts';

const graphOf = (name: string, file = 'model.onnx'): string =>
  fileURLToPath(new URL(`../../golden/tiny/models/${name}/onnx/${file}`, import.meta.url));

const [texts, tokens, realTokens] = [2, 8, 5];

/** What an input is fed: the second text ends in padding. */
function valueAt(name: string, index: number): bigint {
  const place = index % tokens;
  if (name === 'input_ids') return BigInt(5 + ((index * 7) % 40));
  if (name === 'attention_mask') return index >= tokens && place >= realTokens ? 0n : 1n;
  return name === 'position_ids' ? BigInt(place) : 0n;
}

/** All outputs of a graph, one behind the other, without the rows of padding where an output has rows. */
async function outputsOf(model: string | Uint8Array): Promise<number[]> {
  const options = { logSeverityLevel: 4, intraOpNumThreads: 1 } as const;
  const session = await (typeof model === 'string'
    ? InferenceSession.create(model, options)
    : InferenceSession.create(model, options));
  try {
    const feeds = session.inputNames.map((name) => {
      const values = BigInt64Array.from({ length: texts * tokens }, (_, index) => valueAt(name, index));
      return [name, new Tensor('int64', values, [texts, tokens])] as const;
    });
    const results = await session.run(Object.fromEntries(feeds));
    return session.outputNames.flatMap((name) => {
      const output = results[name];
      expect(output?.type).toBe('float32');
      const values = [...(output?.data as Float32Array)];
      const rowLength = values.length / (texts * tokens);
      return output?.dims.length === 3 && output.dims[1] === tokens
        ? values.slice(0, (tokens + realTokens) * rowLength)
        : values;
    });
  } finally {
    await session.release();
  }
}

const families = [
  'bert-dense',
  'bert-splade',
  'bge-m3-heads',
  'cross-encoder-1',
  'decoder-dense',
  'generative-reranker',
  'xlmr-dense',
];
const fused = ['variant-fused-attention', 'variant-fused-raw-mask', 'variant-fused-embedding'];

describe('conversions of exports', () => {
  it.each([...families, ...fused, 'variant-external-data'])('%s, narrowed, keeps a cosine of 0.9995', async (name) => {
    const expected = await outputsOf(graphOf(name));
    const values = await outputsOf(await convertedFile(graphOf(name), ['narrow']));
    expect(maxDifference(values, expected)).toBeGreaterThan(0);
    expect(cosine(values, expected)).toBeGreaterThan(0.9995);
  });

  it.each([...families, ...fused])(
    '%s, quantised, has whole-number products and keeps a cosine of 0.998',
    async (name) => {
      const bytes = await convertedFile(graphOf(name), ['expandAttention', 'quantize']);
      const counts = countOperators(bytes);
      expect(counts['MatMulInteger']).toBeGreaterThan(3);
      expect(cosine(await outputsOf(bytes), await outputsOf(graphOf(name)))).toBeGreaterThan(0.998);
    },
  );

  it.each(fused)(
    '%s: fused attention with a mask becomes another operator, the values stay within 1e-5',
    async (name) => {
      const bytes = await convertedFile(graphOf(name), ['expandAttention']);
      const counts = countOperators(bytes);
      expect(counts).not.toHaveProperty('Attention');
      expect(counts['MultiHeadAttention']).toBeGreaterThan(0);
      expect(maxDifference(await outputsOf(bytes), await outputsOf(graphOf(name)))).toBeLessThan(1e-5);
    },
  );

  it('an fp16 export, widened, is as near to the fp32 one as its weights are', async () => {
    const expected = await outputsOf(graphOf('variant-precisions'));
    const widened = await outputsOf(await convertedFile(graphOf('variant-precisions', 'model_fp16.onnx'), ['widen']));
    expect(cosine(widened, expected)).toBeGreaterThan(0.99999);
  });
});
