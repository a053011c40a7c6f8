/** Owns the rules of the form that a float32 graph takes for a CPU. */
import fc from 'fast-check';
import type * as ort from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { elementTypes } from '../../../src/kernels/onnx/builder.ts';
import type { GraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import type { GraphProto } from '../../../src/kernels/onnx/onnx_pb.ts';
import { isSlowOnCpu } from '../../../src/model/convert/fit-cpu.ts';
import { intTensor, maxDifference, runModel } from '../kernels/run-onnx.ts';
import { converted, countOperators, graphOf, modelBytes, numbers } from './graphs.ts';

const [vocabulary, width, inner, heads] = [40, 16, 24, 4];

/** What differs between the encoders of these tests. */
interface EncoderForm {
  readonly layers?: number;
  /** Whether the normalisation adds the bias of the product before it. */
  readonly hasSkipBias?: boolean;
  readonly hasShift?: boolean;
  /** The attention's mask: as a bias on its products, for keys, or none. */
  readonly mask?: 'bias' | 'keys' | 'none';
  /** Whether the sum that a normalisation reads is a second result of it. */
  readonly readsSum?: boolean;
}

/** 0 for tokens that are read, -10000 for the others. @shape int64 [batch, sequence] -> f32 [batch, 1, sequence, sequence] */
function addBias(builder: GraphBuilder, mask: string): string {
  const floats = builder.node('Cast', [mask], { to: elementTypes.float32 });
  const row = builder.node('Mul', [builder.node('Sub', [floats, builder.floats([1])]), builder.floats([10_000])]);
  const wide = builder.node('Unsqueeze', [row, builder.ints([1, 2])]);
  const length = builder.node('Shape', [mask], { start: 1, end: 2 });
  return builder.node('Expand', [
    wide,
    builder.node('Concat', [builder.ints([1, 1]), length, builder.ints([1])], { axis: 0 }),
  ]);
}

/** An encoder of the operators that optimisers leave: embeddings, attention, two normalisations and a product. */
function encoder({
  layers = 2,
  hasSkipBias = true,
  hasShift = true,
  mask = 'bias',
  readsSum = false,
}: EncoderForm): Uint8Array {
  return modelBytes((builder) => {
    let seed = 1;
    const weights = (...shape: readonly number[]): string => {
      const count = shape.reduce((product, length) => product * length, 1);
      return builder.floats(numbers(count, (seed += 1), 0.5), [...shape]);
    };
    const product = (rows: string, from: number, to: number): string =>
      builder.node('MatMul', [rows, weights(from, to)]);
    const normalized = (rows: string, skip: string): readonly string[] => {
      const bias = hasSkipBias ? weights(width) : '';
      const shift = hasShift ? weights(width) : '';
      const inputs = [rows, skip, weights(width), shift, bias];
      const last = inputs.findLastIndex((name) => name !== '');
      return builder.nodes('SkipLayerNormalization', inputs.slice(0, last + 1), readsSum ? 4 : 1);
    };
    const ids = builder.input('input_ids', elementTypes.int64, ['batch', 'sequence']);
    const given = builder.input('attention_mask', elementTypes.int64, ['batch', 'sequence']);
    const bias = mask === 'bias' ? addBias(builder, given) : '';
    const keys = mask === 'keys' ? builder.node('Cast', [given], { to: elementTypes.int32 }) : '';
    let rows = builder.node('Gather', [weights(vocabulary, width), ids]);
    for (let layer = 0; layer < layers; layer += 1) {
      const projected = [0, 1, 2].map(() => product(rows, width, width));
      const masked = mask === 'none' ? projected : [...projected, '', keys, ...(bias === '' ? [] : [bias])];
      const attended = builder.node('MultiHeadAttention', masked, { num_heads: heads });
      const [first = ''] = normalized(product(attended, width, width), rows);
      const grown = builder.node('BiasGelu', [product(first, width, inner), weights(inner)]);
      const [second = '', , , sum = ''] = normalized(product(grown, inner, width), first);
      rows = readsSum ? builder.node('Add', [second, sum]) : second;
    }
    builder.output('y', rows, ['batch', 'sequence', width]);
  }, leaveOutStatistics);
}

/** Takes the names of mean and deviation away, which the engine computes on GPUs only. */
function leaveOutStatistics({ node }: GraphProto): void {
  for (const { opType, output } of node) if (opType === 'SkipLayerNormalization') output.fill('', 1, 3);
}

const resultOf = async (bytes: Uint8Array, feeds: Record<string, ort.Tensor>): Promise<readonly number[]> =>
  (await runModel(bytes, feeds))['y']?.values ?? [];

const fullMask = (rows: readonly (readonly number[])[]): ort.Tensor => intTensor(rows.map((row) => row.map(() => 1)));

describe('fitCpu', () => {
  const forms: Readonly<Record<string, EncoderForm>> = {
    'a mask as a bias': {},
    'a mask for keys': { mask: 'keys' },
    'no mask': { mask: 'none' },
    'normalisation without a bias': { hasSkipBias: false },
    'normalisation without a shift': { hasShift: false },
    'normalisation with neither': { hasSkipBias: false, hasShift: false },
    'the sum that is normalised is read as well': { readsSum: true },
  };

  it.each(Object.entries(forms))('%s: texts of any length keep their values, padded or not', async (_, form) => {
    const before = encoder(form);
    const after = await converted(before, ['fitCpu']);
    expect(countOperators(after)).not.toHaveProperty('SkipLayerNormalization');
    const token = fc.integer({ min: 0, max: vocabulary - 1 });
    const batch = fc
      .record({ rows: fc.integer({ min: 1, max: 4 }), length: fc.integer({ min: 1, max: 12 }) })
      .chain(({ rows, length }) =>
        fc.record({
          ids: fc.array(fc.array(token, { minLength: length, maxLength: length }), {
            minLength: rows,
            maxLength: rows,
          }),
          lengths: fc.array(fc.integer({ min: 1, max: length }), { minLength: rows, maxLength: rows }),
          isPadded: fc.boolean(),
        }),
      );
    await fc.assert(
      fc.asyncProperty(batch, async ({ ids, lengths, isPadded }) => {
        const mask = ids.map((row, at) => row.map((_id, position) => Number(position < (lengths[at] ?? 1))));
        const feeds = { input_ids: intTensor(ids), attention_mask: isPadded ? intTensor(mask) : fullMask(ids) };
        const [expected, found] = [await resultOf(before, feeds), await resultOf(after, feeds)];
        expect(found).toHaveLength(expected.length);
        expect(maxDifference(found, expected)).toBeLessThan(1e-5);
      }),
      { numRuns: 25 },
    );
  });

  it('no fused normalisation or activation is left, and attention has a way past its bias', async () => {
    const after = await converted(encoder({ layers: 3 }), ['fitCpu']);
    expect(countOperators(after)).toMatchObject({ LayerNormalization: 6, Gelu: 3, If: 3 });
    for (const operator of ['SkipLayerNormalization', 'BiasGelu', 'MultiHeadAttention']) {
      expect(countOperators(after)).not.toHaveProperty(operator);
    }
  });

  it('layers share the question whether their bias is zero', async () => {
    expect(countOperators(await converted(encoder({ layers: 3 }), ['fitCpu']))).toMatchObject({ ReduceMax: 1, Not: 1 });
  });

  it('a text of a batch of one length has the values that it has alone', async () => {
    const after = await converted(encoder({}), ['fitCpu']);
    const ids = [0, 1, 2].map((row) => [...numbers(9, row + 5)].map((value) => Math.floor((value + 1) * 19)));
    const together = await resultOf(after, { input_ids: intTensor(ids), attention_mask: fullMask(ids) });
    const alone = await Promise.all(
      ids.map((row) => resultOf(after, { input_ids: intTensor([row]), attention_mask: fullMask([row]) })),
    );
    expect(maxDifference(together, alone.flat())).toBeLessThan(1e-6);
  });

  it('padding behind a text does not change its values', async () => {
    const after = await converted(encoder({}), ['fitCpu']);
    const short = [3, 14, 15, 9];
    const ids = [
      [...short, 0, 0, 0],
      [2, 7, 18, 28, 18, 28, 4],
    ];
    const mask = intTensor([
      [1, 1, 1, 1, 0, 0, 0],
      [1, 1, 1, 1, 1, 1, 1],
    ]);
    const together = await resultOf(after, { input_ids: intTensor(ids), attention_mask: mask });
    const alone = await resultOf(after, { input_ids: intTensor([short]), attention_mask: fullMask([short]) });
    expect(maxDifference(together.slice(0, short.length * width), alone)).toBeLessThan(1e-5);
  });

  it('attention keeps its node where it has no bias, or a mask of keys', async () => {
    for (const mask of ['none', 'keys'] as const) {
      const after = await converted(encoder({ mask }), ['fitCpu']);
      expect(countOperators(after)).toMatchObject({ MultiHeadAttention: 2 });
      expect(countOperators(after)).not.toHaveProperty('If');
    }
  });

  it('a normalisation whose mean is read keeps its node', async () => {
    const bytes = modelBytes((builder) => {
      const rows = builder.input('x', elementTypes.float32, ['batch', 'sequence', width]);
      const scale = builder.floats(numbers(width));
      const [out = '', mean = ''] = builder.nodes('SkipLayerNormalization', [rows, rows, scale], 2);
      builder.output('y', out, ['batch', 'sequence', width]);
      builder.output('mean', mean, ['batch', 'sequence', 1]);
    });
    expect(countOperators(await converted(bytes, ['fitCpu']))).toMatchObject({ SkipLayerNormalization: 1 });
  });

  it('a second time changes nothing', async () => {
    const once = await converted(encoder({}), ['fitCpu']);
    expect(graphOf(await converted(once, ['fitCpu']))).toEqual(graphOf(once));
  });

  it('a graph without such operators stays as it is', async () => {
    const bytes = modelBytes((builder) => {
      const rows = builder.input('x', elementTypes.float32, ['batch', width]);
      const weights = builder.floats(numbers(width * inner), [width, inner]);
      builder.output('y', builder.node('Relu', [builder.node('MatMul', [rows, weights])]), ['batch', inner]);
    });
    const after = await converted(bytes, ['fitCpu']);
    expect(graphOf(after)).toEqual(graphOf(await converted(bytes, [])));
    expect(isSlowOnCpu(new Set(Object.keys(countOperators(bytes))))).toBe(false);
  });
});
