/** Owns the rules of widening a graph from float16 to float32. */
import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { elementTypes } from '../../../src/kernels/onnx/builder.ts';
import {
  AttributeProtoSchema,
  GraphProtoSchema,
  NodeProtoSchema,
  TensorProtoSchema,
  ValueInfoProtoSchema,
} from '../../../src/kernels/onnx/onnx_pb.ts';
import type { GraphProto, ModelProto } from '../../../src/kernels/onnx/onnx_pb.ts';
import { narrowFloats } from '../../../src/model/convert/half.ts';
import { bytesOf } from '../../../src/model/convert/tensor-values.ts';
import { floatTensor, maxDifference, runModel } from '../kernels/run-onnx.ts';
import { converted, graphOf, modelBytes, numbers } from './graphs.ts';

const { float16, float32 } = elementTypes;

/** Makes constants float16, in each of the two fields that may hold them. */
function narrowConstants(graph: GraphProto): void {
  for (const [index, tensor] of graph.initializer.entries()) {
    if (tensor.dataType !== float32) continue;
    const halves = narrowFloats(new Float32Array(tensor.rawData.slice().buffer));
    tensor.dataType = float16;
    tensor.rawData = index % 2 === 0 ? bytesOf(halves) : new Uint8Array(0);
    tensor.int32Data = index % 2 === 0 ? [] : [...halves];
  }
}

/** `x` as float16, times a large constant, plus a small one and one in a node; `y` is float32, `half` float16. */
const halfModel = (change: (graph: GraphProto, model: ModelProto) => void = () => undefined): Uint8Array =>
  modelBytes(
    (builder) => {
      const x = builder.node('Cast', [builder.input('x', float32, ['rows', 40])], { to: float16 });
      const product = builder.node('MatMul', [x, builder.floats(numbers(40 * 30), [40, 30])]);
      const sum = builder.node('Add', [product, builder.floats(numbers(30, 2, 1e-6))]);
      const inner = builder.node('Add', [sum, 'offset']);
      builder.output('y', builder.node('Cast', [inner], { to: float32 }), ['rows', 30]);
      builder.output('half', inner, ['rows', 30]);
    },
    (graph, model) => {
      narrowConstants(graph);
      const t = create(TensorProtoSchema, { dataType: float16, rawData: bytesOf(narrowFloats(Float32Array.of(0.25))) });
      const value = create(AttributeProtoSchema, { name: 'value', type: 4, t });
      graph.node.unshift(create(NodeProtoSchema, { opType: 'Constant', output: ['offset'], attribute: [value] }));
      const half = graph.output[1]?.type?.tensorType;
      if (half !== undefined) half.elemType = float16;
      graph.valueInfo.push(
        create(ValueInfoProtoSchema, {
          name: 'offset',
          type: { tensorType: { elemType: float16, shape: { dim: [] } } },
        }),
      );
      change(graph, model);
    },
  );

describe('widen', () => {
  it('gives the values of float32 arithmetic on the float16 weights', async () => {
    const x = numbers(40, 9);
    const bytes = await converted(halfModel(), ['widen']);
    const constantOf = (dims: number) => {
      const tensor = graphOf(bytes).initializer.find((one) => one.dims.length === dims);
      return new Float32Array(tensor?.rawData.slice().buffer ?? []);
    };
    const [weights, bias] = [constantOf(2), constantOf(1)];
    const expected = Array.from({ length: 30 }, (_, column) => {
      const products = Array.from(x, (value, row) => value * (weights[row * 30 + column] ?? NaN));
      return products.reduce((sum, product) => sum + product, (bias[column] ?? NaN) + 0.25);
    });
    const widened = await runModel(bytes, { x: floatTensor([[...x]]) });
    expect(maxDifference(widened['y']?.values ?? [], expected)).toBeLessThan(1e-5);
    expect(widened['half']).toEqual(widened['y']);
  });

  it('leaves no float16 behind: constants, nodes, inputs, outputs and value infos', async () => {
    const graph = graphOf(await converted(halfModel(), ['widen']));
    const types = [
      ...graph.initializer.map(({ dataType }) => dataType),
      ...graph.node.flatMap(({ attribute }) => attribute.flatMap(({ i, t }) => [Number(i), t?.dataType])),
      ...[...graph.input, ...graph.output, ...graph.valueInfo].map(({ type }) => type?.tensorType?.elemType),
    ];
    expect(types).toContain(float32);
    expect(types).not.toContain(float16);
    expect(graph.output.map(({ name }) => name)).toEqual(['y', 'half']);
  });

  it('float16 inside the branches of an If is widened too', async () => {
    const branch = (value: number) => {
      const t = create(TensorProtoSchema, {
        dataType: float16,
        rawData: bytesOf(narrowFloats(Float32Array.of(value))),
      });
      const attribute = [create(AttributeProtoSchema, { name: 'value', type: 4, t })];
      return create(GraphProtoSchema, {
        name: 'branch',
        node: [create(NodeProtoSchema, { opType: 'Constant', output: ['chosen'], attribute })],
        output: [
          create(ValueInfoProtoSchema, {
            name: 'chosen',
            type: { tensorType: { elemType: float16, shape: { dim: [] } } },
          }),
        ],
      });
    };
    const bytes = modelBytes(
      (builder) => {
        const x = builder.input('x', float32, ['rows']);
        const total = builder.node('ReduceSum', [x], { keepdims: 0 });
        const isPositive = builder.node('Greater', [total, builder.floats([0], [])]);
        builder.output('y', builder.node('If', [isPositive]), []);
      },
      (graph) => {
        const node = graph.node.find(({ opType }) => opType === 'If');
        if (node === undefined) throw new Error('no If');
        node.attribute = [
          create(AttributeProtoSchema, { name: 'then_branch', type: 5, g: branch(0.5) }),
          create(AttributeProtoSchema, { name: 'else_branch', type: 5, g: branch(-0.5) }),
        ];
      },
    );
    const widened = await converted(bytes, ['widen']);
    expect((await runModel(widened, { x: floatTensor([1, 2]) }))['y']?.values).toEqual([0.5]);
    expect((await runModel(widened, { x: floatTensor([-1, -2]) }))['y']?.values).toEqual([-0.5]);
  });
});
