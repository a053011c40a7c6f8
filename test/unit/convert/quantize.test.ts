/** Owns the rules of quantising a graph. */
import { describe, expect, it } from 'vitest';
import { elementTypes } from '../../../src/kernels/onnx/builder.ts';
import type { GraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import { create } from '@bufbuild/protobuf';
import { AttributeProtoSchema, NodeProtoSchema } from '../../../src/kernels/onnx/onnx_pb.ts';
import type { GraphProto } from '../../../src/kernels/onnx/onnx_pb.ts';
import { cosine, floatTensor, intTensor, maxDifference, runModel } from '../kernels/run-onnx.ts';
import { converted, countOperators, graphOf, modelBytes, numbers } from './graphs.ts';

const [rows, columns] = [48, 24];

/** Columns of very different sizes, which one scale for all would flatten. */
const weights = numbers(rows * columns, 3).map((value, index) => value * 10 ** ((index % columns) % 4));

/** The product as the recipe defines it, one scale per column and one for all of `x`, in plain arithmetic. */
function reference(x: Float32Array): number[] {
  const [low, high] = [Math.min(0, ...x), Math.max(0, ...x)];
  const step = (high - low) / 255;
  const zero = Math.round(-low / step);
  const whole = Array.from(x, (value) => Math.min(255, Math.max(0, Math.round(value / step) + zero)) - zero);
  return Array.from({ length: columns }, (_, column) => {
    const values = Array.from({ length: rows }, (__, row) => weights[row * columns + column] ?? NaN);
    const scale = Math.max(...values.map(Math.abs)) / 127;
    return values.reduce((sum, value, row) => sum + Math.round(value / scale) * (whole[row] ?? NaN), 0) * scale * step;
  });
}

const x = numbers(rows, 8);
const feeds = { x: floatTensor([[...x]]) };

const product = (
  build: (builder: GraphBuilder, x: string) => string,
  change?: (graph: GraphProto) => void,
): Uint8Array =>
  modelBytes((builder) => {
    builder.output('y', build(builder, builder.input('x', elementTypes.float32, ['n', rows])), ['n', columns]);
  }, change);

const transposed = Float32Array.from(
  { length: rows * columns },
  (_, index) => weights[(index % rows) * columns + Math.floor(index / rows)] ?? 0,
);

const products: Readonly<Record<string, Uint8Array>> = {
  MatMul: product((builder, input) => builder.node('MatMul', [input, builder.floats(weights, [rows, columns])])),
  'MatMul with a transposed constant': product((builder, input) =>
    builder.node('MatMul', [
      input,
      builder.node('Transpose', [builder.floats(transposed, [columns, rows])], { perm: [1, 0] }),
    ]),
  ),
  'Gemm with a transposed factor': product((builder, input) =>
    builder.node(
      'Gemm',
      [input, builder.floats(transposed, [columns, rows]), builder.floats(new Float32Array(columns))],
      { transB: 1 },
    ),
  ),
  'MatMul with a Constant node': product(
    (builder, input) => builder.node('MatMul', [input, builder.floats(weights, [rows, columns])]),
    (graph) => {
      const [t] = graph.initializer.splice(0);
      if (t === undefined) throw new Error('no constant');
      const attribute = [create(AttributeProtoSchema, { name: 'value', type: 4, t })];
      graph.node.unshift(create(NodeProtoSchema, { opType: 'Constant', output: [t.name], attribute }));
    },
  ),
};

describe('quantize', () => {
  it.each(Object.entries(products))(
    '%s becomes a whole-number product with one scale per output channel',
    async (_, bytes) => {
      const quantized = await converted(bytes, ['quantize']);
      expect(countOperators(quantized)).toMatchObject({ DynamicQuantizeLinear: 1, MatMulInteger: 1, Cast: 1, Mul: 2 });
      expect(countOperators(quantized)).not.toHaveProperty('MatMul');
      const expected = reference(x);
      const values = (await runModel(quantized, feeds))['y']?.values ?? [];
      const relative = values.map((value, column) => (value - (expected[column] ?? NaN)) / 10 ** (column % 4));
      expect(maxDifference(relative, new Array<number>(columns).fill(0))).toBeLessThan(1e-4);
      expect(cosine(values, (await runModel(bytes, feeds))['y']?.values ?? [])).toBeGreaterThan(0.9995);
    },
  );

  it('float32 weights that nothing reads any more are gone, and the file is about a quarter', async () => {
    for (const bytes of Object.values(products)) {
      const quantized = await converted(bytes, ['quantize']);
      const large = graphOf(quantized).initializer.filter(({ rawData }) => rawData.length > rows * columns);
      expect(large).toEqual([]);
      expect(countOperators(quantized)).not.toHaveProperty('Constant');
      expect(quantized.length).toBeLessThan(bytes.length / 2);
    }
  });

  it('products of the same rows share their quantised form', async () => {
    const bytes = product((builder, input) => {
      const factor = builder.floats(weights, [rows, columns]);
      const one = builder.node('MatMul', [input, factor]);
      const other = builder.node('MatMul', [input, builder.floats(numbers(rows * columns, 5), [rows, columns])]);
      return builder.node('Add', [one, builder.node('Add', [other, builder.node('MatMul', [input, factor])])]);
    });
    const quantized = await converted(bytes, ['quantize']);
    expect(countOperators(quantized)).toMatchObject({ DynamicQuantizeLinear: 1, MatMulInteger: 3 });
    expect(graphOf(quantized).initializer.filter(({ dataType }) => dataType === elementTypes.int8)).toHaveLength(2);
  });

  it('a product of two computed matrices stays in float32, and so do a few labels', async () => {
    const bytes = product((builder, input) => {
      const square = builder.node('MatMul', [builder.node('Transpose', [input], { perm: [1, 0] }), input]);
      const labels = builder.node('MatMul', [square, builder.floats(numbers(rows * 2), [rows, 2])]);
      return builder.node('Gemm', [
        builder.node('Transpose', [labels], { perm: [1, 0] }),
        builder.floats(weights, [rows, columns]),
      ]);
    });
    const counts = countOperators(await converted(bytes, ['quantize']));
    expect(counts).toMatchObject({ MatMul: 2, MatMulInteger: 1 });
  });

  it('a Gemm that scales stays in float32', async () => {
    const bytes = product(
      (builder, input) => builder.node('Gemm', [input, builder.floats(weights, [rows, columns])]),
      (graph) => graph.node[0]?.attribute.push(create(AttributeProtoSchema, { name: 'alpha', type: 1, f: 0.5 })),
    );
    expect(countOperators(await converted(bytes, ['quantize']))).toMatchObject({ Gemm: 1 });
  });

  it('an embedding table that is also the last factor stays in float32 where it is looked up', async () => {
    const bytes = modelBytes((builder) => {
      const table = builder.floats(numbers(60 * rows, 4), [60, rows]);
      const hidden = builder.node('Gather', [table, builder.input('ids', elementTypes.int64, ['n'])]);
      const output = builder.node('MatMul', [hidden, builder.node('Transpose', [table], { perm: [1, 0] })]);
      builder.output('y', output, ['n', 60]);
    });
    const quantized = await converted(bytes, ['quantize']);
    const ids = intTensor([3, 7, 59]);
    const [before, after] = [(await runModel(bytes, { ids }))['y'], (await runModel(quantized, { ids }))['y']];
    expect(after?.dims).toEqual([3, 60]);
    expect(cosine(before?.values ?? [], after?.values ?? [])).toBeGreaterThan(0.9995);
    const types = graphOf(quantized).initializer.map(({ dataType, dims }) => [dataType, dims.map(Number)]);
    expect(types).toContainEqual([elementTypes.float32, [60, rows]]);
    expect(types).toContainEqual([elementTypes.int8, [60, rows]]);
  });

  it('a channel of zeros stays zero', async () => {
    const empty = weights.map((value, index) => (index % columns === 5 ? 0 : value));
    const bytes = product((builder, input) => builder.node('MatMul', [input, builder.floats(empty, [rows, columns])]));
    const values = (await runModel(await converted(bytes, ['quantize']), feeds))['y']?.values ?? [];
    expect(values[5]).toBe(0);
    expect(values.filter((value) => value === 0)).toHaveLength(1);
  });
});
