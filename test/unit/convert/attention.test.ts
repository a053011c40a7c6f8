/** Owns the rules of rewriting the fused attention operator. */
import type * as ort from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { elementTypes } from '../../../src/kernels/onnx/builder.ts';
import type { GraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import type { GraphProto } from '../../../src/kernels/onnx/onnx_pb.ts';
import { floatTensor, intTensor, maxDifference, runModel } from '../kernels/run-onnx.ts';
import { converted, countOperators, modelBytes, numbers } from './graphs.ts';

const [batch, sequence, width, heads] = [3, 5, 16, 4];

/** How a text's real tokens are told to the operator. */
type MaskForm = 'none' | 'tokens' | 'lengths';

interface AttentionForm {
  readonly mask?: MaskForm;
  readonly hasBias?: boolean;
  readonly layers?: number;
  /** Widths of queries, keys and values where they differ. */
  readonly widths?: readonly [number, number, number];
  readonly attributes?: Readonly<Record<string, number | readonly number[]>>;
  readonly change?: (graph: GraphProto) => void;
}

function addMask(builder: GraphBuilder, mask: MaskForm): string {
  if (mask === 'none') return '';
  const tokens = builder.node('Cast', [builder.input('attention_mask', elementTypes.int64, ['batch', 'sequence'])], {
    to: elementTypes.int32,
  });
  return mask === 'tokens' ? tokens : builder.node('ReduceSum', [tokens, builder.ints([1])], { keepdims: 0 });
}

function attentionModel({
  mask = 'tokens',
  hasBias = true,
  layers = 1,
  widths,
  attributes = {},
  change,
}: AttentionForm) {
  const [query, key, value] = widths ?? [width, width, width];
  const packed = query + key + value;
  return modelBytes((builder) => {
    const given = addMask(builder, mask);
    let rows = builder.input('x', elementTypes.float32, ['batch', 'sequence', width]);
    for (let layer = 0; layer < layers; layer += 1) {
      const weights = builder.floats(numbers(width * packed, layer + 2), [width, packed]);
      const bias = hasBias ? builder.floats(numbers(packed, layer + 20)) : '';
      const sizes: Record<string, readonly number[]> = widths === undefined ? {} : { qkv_hidden_sizes: widths };
      rows = builder.node('Attention', [rows, weights, bias, given], { num_heads: heads, ...sizes, ...attributes });
    }
    builder.output('y', rows, ['batch', 'sequence', value]);
  }, change);
}

const x = floatTensor(
  Array.from({ length: batch }, (_, row) => [0, 1, 2, 3, 4].map((at) => [...numbers(width, 100 + row * 9 + at, 2)])),
);
const attention_mask = intTensor([
  [1, 1, 1, 1, 1],
  [1, 1, 1, 0, 0],
  [1, 0, 0, 0, 0],
]);

async function differenceOf(form: AttentionForm): Promise<number> {
  const feeds: Record<string, ort.Tensor> = form.mask === 'none' ? { x } : { x, attention_mask };
  const bytes = attentionModel(form);
  const rewritten = await converted(bytes, ['expandAttention']);
  expect(countOperators(rewritten)).not.toHaveProperty('Attention');
  expect(countOperators(rewritten)).toMatchObject({ MultiHeadAttention: form.layers ?? 1 });
  const before = (await runModel(bytes, feeds))['y'];
  const after = (await runModel(rewritten, feeds))['y'];
  expect(after?.dims).toEqual([batch, sequence, form.widths?.[2] ?? width]);
  expect(new Set(before?.values).size).toBeGreaterThan(100);
  return maxDifference(after?.values ?? [], before?.values ?? []);
}

describe('expandAttention', () => {
  const forms: Readonly<Record<string, AttentionForm>> = {
    'a mask of tokens': { mask: 'tokens' },
    'a mask of lengths': { mask: 'lengths' },
    'no mask': { mask: 'none' },
    'values of another width': { widths: [16, 16, 32] },
    'several layers that share a mask': { layers: 3 },
    'a mask for what follows': { mask: 'none', attributes: { unidirectional: 1 } },
  };
  it.each(Object.entries(forms))('%s: the values stay within 1e-5', async (_, form) => {
    expect(await differenceOf(form)).toBeLessThan(1e-5);
  });

  // The engine's own operator ends the process where it has no bias, so it is compared with one of zeros.
  it('no bias: the values are those of a bias of zeros', async () => {
    const withZeros = attentionModel({
      change: (graph) => {
        for (const tensor of graph.initializer)
          if (tensor.dims.length === 1 && tensor.dims[0] === 48n) tensor.rawData.fill(0);
      },
    });
    const rewritten = await converted(attentionModel({ hasBias: false }), ['expandAttention']);
    expect(countOperators(rewritten)).not.toHaveProperty('Add');
    const [before, after] = [
      await runModel(withZeros, { x, attention_mask }),
      await runModel(rewritten, { x, attention_mask }),
    ];
    expect(maxDifference(after['y']?.values ?? [], before['y']?.values ?? [])).toBeLessThan(1e-5);
  });

  it('layers share the bias of their mask', async () => {
    const rewritten = await converted(attentionModel({ layers: 3 }), ['expandAttention']);
    expect(countOperators(rewritten)).toMatchObject({ Expand: 1, MatMul: 9, Add: 9 });
  });

  it('rows of padding have no influence on the others', async () => {
    const rewritten = await converted(attentionModel({}), ['expandAttention']);
    const changed = floatTensor(
      Array.from({ length: batch }, (_, row) =>
        [0, 1, 2, 3, 4].map((at) => [...numbers(width, row === 1 && at > 2 ? 7 : 100 + row * 9 + at, 2)]),
      ),
    );
    const rowsOf = async (rows: ort.Tensor) =>
      (await runModel(rewritten, { x: rows, attention_mask }))['y']?.values ?? [];
    const start = sequence * width;
    const kept = (values: readonly number[]) => values.slice(start, start + 3 * width);
    expect(maxDifference(kept(await rowsOf(changed)), kept(await rowsOf(x)))).toBeLessThan(1e-6);
  });

  it('an operator with a mask of a form that is not known stays as it is', async () => {
    const isLonger = (graph: GraphProto): void => {
      const node = graph.node.find(({ opType }) => opType === 'Attention');
      if (node !== undefined) node.input[3] = 'elsewhere';
    };
    const kept = await converted(attentionModel({ change: isLonger }), ['expandAttention']);
    expect(countOperators(kept)).toMatchObject({ Attention: 1 });
    expect(countOperators(kept)).not.toHaveProperty('MatMul');
  });
});
