import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  encodeEmbedResult,
  encodeMultiResult,
  encodeRerankResult,
  encodeSparseResult,
  maxVectorBytes,
  type CallUsage,
  type VectorForm,
} from '../../../src/rpc/encode.ts';
import { integerOutputs, quantize } from '../../../src/tensor/quantize.ts';
import { turnsDuring } from '../../support/event-loop.ts';

const usage: CallUsage = {
  inputTokens: 3,
  truncated: [1],
  latencyMs: 4.6,
  queueMs: 0.4,
  computeMs: 2.5,
  device: 'cpu:0',
};
const named = { 'x-trivec': { identity: 'model@1:int8:mean' } };
const facts = { usage, ...named };
const writtenUsage = { inputTokens: 3, truncated: [1], latencyMs: 5, queueMs: 0, computeMs: 3, device: 'cpu:0' };
const json: VectorForm = { encoding: 'json', output: null };
const base64: VectorForm = { encoding: 'f32-base64', output: null };
const parse = (bytes: Buffer) => JSON.parse(bytes.toString()) as Record<string, unknown>;
const decode = (blob: unknown) => {
  const bytes = Buffer.from(String(blob), 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(4 * at));
};
const vectors = (dimension: number) =>
  fc.array(fc.float32Array({ minLength: dimension, maxLength: dimension, noNaN: true, noDefaultInfinity: true }), {
    maxLength: 5,
  });

describe('dense vectors', () => {
  it('carry the same float32 as numbers and as base64', async () => {
    await fc.assert(
      fc.asyncProperty(vectors(4), async (given) => {
        const result = { vectors: given, dimension: 4 };
        const numbers = parse(await encodeEmbedResult(result, json, facts));
        const blobs = parse(await encodeEmbedResult(result, base64, facts));
        const asRead = (numbers['vectors'] as number[][]).map((vector) => vector.map(Math.fround));
        expect(asRead).toEqual(given.map((vector) => Array.from(vector, (value) => value + 0)));
        expect((blobs['vectors'] as string[]).map(decode)).toEqual(given.map((vector) => Array.from(vector)));
      }),
    );
  });

  it('name their encoding and dimension, also where there is none', async () => {
    for (const form of [json, base64]) {
      expect(parse(await encodeEmbedResult({ vectors: [], dimension: 4 }, form, facts))).toEqual({
        vectors: [],
        encoding: form.encoding,
        dimension: 4,
        usage: writtenUsage,
        ...named,
      });
    }
  });

  it('in base64 are little-endian, padded, and of a view only its own bytes', async () => {
    const view = Float32Array.of(9, 97, 0, 0, 0, 9).subarray(1, 5);
    const bytes = await encodeEmbedResult({ vectors: [view], dimension: 4 }, base64, facts);
    expect(parse(bytes)['vectors']).toEqual(['AADCQgAAAAAAAAAAAAAAAA==']);
  });

  it.each(integerOutputs)('as %s are whole numbers under the unpacked dimension', async (output) => {
    const vector = Float32Array.from({ length: 16 }, (_, at) => (at - 8) / 10);
    const bytes = await encodeEmbedResult({ vectors: [vector], dimension: 16 }, { encoding: 'json', output }, facts);
    expect(parse(bytes)).toMatchObject({ vectors: [quantize(vector, output)], dimension: 16, encoding: 'json' });
  });

  it('let the event loop turn between slices of 32,768 numbers', async () => {
    const many = Array.from({ length: 80 }, () => new Float32Array(4096).fill(0.1));
    const turns = await turnsDuring(() => encodeEmbedResult({ vectors: many, dimension: 4096 }, json, facts));
    expect(turns).toBeGreaterThanOrEqual(9);
  });

  it('that are few are written without a pause', async () => {
    const few = Array.from({ length: 8 }, () => new Float32Array(384).fill(0.1));
    expect(await turnsDuring(() => encodeEmbedResult({ vectors: few, dimension: 384 }, json, facts))).toBe(0);
  });
});

describe('multi-vectors', () => {
  const matrices = [
    { values: Float32Array.of(97, 0, 98, 0.5), dimension: 2 },
    { values: Float32Array.of(1, 2), dimension: 2 },
  ];

  it('are one list of rows per text, each row a list or a blob', async () => {
    const numbers = parse(await encodeMultiResult({ matrices, dimension: 2 }, json, facts));
    expect(numbers).toEqual({
      matrices: [
        [
          [97, 0],
          [98, 0.5],
        ],
        [[1, 2]],
      ],
      encoding: 'json',
      dimension: 2,
      usage: writtenUsage,
      ...named,
    });
    const blobs = parse(await encodeMultiResult({ matrices, dimension: 2 }, base64, facts));
    expect((blobs['matrices'] as string[][]).map((rows) => rows.map(decode))).toEqual(numbers['matrices']);
  });

  it('let the event loop turn in between', async () => {
    const many = Array.from({ length: 20 }, () => ({ values: new Float32Array(128 * 256).fill(0.1), dimension: 128 }));
    const turns = await turnsDuring(() => encodeMultiResult({ matrices: many, dimension: 128 }, json, facts));
    expect(turns).toBeGreaterThanOrEqual(19);
  });
});

describe('sparse vectors', () => {
  it('are indices and values of equal length, without an encoding', async () => {
    const sparse = [
      { indices: Int32Array.of(3, 30_521), values: Float32Array.of(0.5, 1.25) },
      { indices: new Int32Array(), values: new Float32Array() },
    ];
    expect(parse(await encodeSparseResult(sparse, facts))).toEqual({
      sparse: [
        { indices: [3, 30_521], values: [0.5, 1.25] },
        { indices: [], values: [] },
      ],
      usage: writtenUsage,
      ...named,
    });
  });
});

describe('a rerank', () => {
  it('gives scores, order and results that agree, as doubles', () => {
    const scores = [0.1, 0.999999999999, 0.5];
    expect(
      parse(encodeRerankResult(scores, [1, 2], { ...facts, usage: { ...usage, candidates: 3, reranked: 3 } })),
    ).toEqual({
      scores,
      order: [1, 2],
      results: [
        { index: 1, score: 0.999999999999 },
        { index: 2, score: 0.5 },
      ],
      usage: { ...writtenUsage, candidates: 3, reranked: 3 },
      ...named,
    });
  });
});

describe('usage', () => {
  it('has whole milliseconds, no device where nothing ran, and notes where there are any', () => {
    const written = parse(encodeRerankResult([], [], { usage: { ...usage, device: null, notes: ['a note'] } }))[
      'usage'
    ];
    expect(written).toEqual({ ...writtenUsage, device: undefined, notes: ['a note'] });
    expect(Object.keys(written as object)).not.toContain('device');
  });
});

describe('the largest size of a vector', () => {
  const forms: VectorForm[] = [
    json,
    base64,
    ...integerOutputs.map((output) => ({ encoding: 'json', output }) as const),
  ];

  it.each(forms)('is never passed in the form %j', async (form) => {
    const component = fc.oneof(
      fc.float({ min: -2, max: 2, noNaN: true }),
      fc.float({ min: Math.fround(-1e-5), max: Math.fround(1e-5), noNaN: true }),
    );
    const vector = fc.array(component, { minLength: 16, maxLength: 16 }).map((values) => Float32Array.from(values));
    const overhead = (await encodeEmbedResult({ vectors: [], dimension: 16 }, form, facts)).length;
    await fc.assert(
      fc.asyncProperty(fc.array(vector, { minLength: 1, maxLength: 4 }), async (given) => {
        const bytes = await encodeEmbedResult({ vectors: given, dimension: 16 }, form, facts);
        expect(bytes.length - overhead).toBeLessThanOrEqual(given.length * maxVectorBytes(16, form));
      }),
    );
  });
});
