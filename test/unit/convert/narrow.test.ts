/** Owns the rules of narrowing a graph from float32 to float16. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { elementTypes } from '../../../src/kernels/onnx/builder.ts';
import type { GraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import { AttributeProtoSchema, FunctionProtoSchema, GraphProtoSchema } from '../../../src/kernels/onnx/onnx_pb.ts';
import { makeNode } from '../../../src/model/convert/make-node.ts';
import { createTinyWeights } from '../../support/tiny-weights.ts';
import { encodeTinyGraph } from '../../support/tiny-graph.ts';
import { boolTensor, cosine, floatTensor, intTensor, maxDifference, runModel } from '../kernels/run-onnx.ts';
import { converted, convertedFile, graphOf, modelBytes, numbers, withFolder } from './graphs.ts';

const { float16, float32, int64 } = elementTypes;
const width = 16;

const rowsModel = (build: (builder: GraphBuilder, x: string) => string): Uint8Array =>
  modelBytes((builder) => {
    builder.output('y', build(builder, builder.input('x', float32, ['n', width])), ['n', width]);
  });

/** A layer normalisation of older operator sets, with the epsilon that BERT has. */
const oldNormalization = (builder: GraphBuilder, rows: string): string => {
  const centred = builder.node('Sub', [rows, builder.node('ReduceMean', [rows], { axes: [-1] })]);
  const squares = builder.node('Pow', [centred, builder.floats([2], [])]);
  const variance = builder.node('ReduceMean', [squares], { axes: [-1] });
  const root = builder.node('Sqrt', [builder.node('Add', [variance, builder.floats([1e-12], [])])]);
  return builder.node('Div', [centred, root]);
};

/** Element types that reach the nodes of an operator, by the constants and Casts that feed them. */
function typesRead(bytes: Uint8Array, operator: string): Set<number> {
  const graph = graphOf(bytes);
  const types = new Map<string, number>();
  for (const { name, dataType } of graph.initializer) types.set(name, dataType);
  for (const { opType, output, attribute } of graph.node) {
    if (opType === 'Cast') types.set(output[0] ?? '', Number(attribute[0]?.i));
  }
  const inputs = graph.node.filter(({ opType }) => opType === operator).flatMap(({ input }) => input);
  return new Set(inputs.flatMap((name) => types.get(name) ?? []));
}

describe('narrow', () => {
  it('a tiny encoder, batched with padding, keeps a cosine of 0.9995', async () => {
    const bytes = encodeTinyGraph(createTinyWeights(1), 'hiddenState');
    const narrowed = await converted(bytes, ['narrow']);
    const input_ids = intTensor([
      [2, 9, 17, 33, 40, 3],
      [2, 55, 3, 0, 0, 0],
    ]);
    const attention_mask = intTensor([
      [1, 1, 1, 1, 1, 1],
      [1, 1, 1, 0, 0, 0],
    ]);
    const feeds = {
      input_ids,
      attention_mask,
      token_type_ids: intTensor([new Array<number>(6).fill(0), new Array<number>(6).fill(0)]),
    };
    const [before, after] = [await runModel(bytes, feeds), await runModel(narrowed, feeds)];
    const [expected, values] = [before['last_hidden_state'], after['last_hidden_state']];
    expect(values?.dims).toEqual(expected?.dims);
    // Rounding happened at all: without it there is nothing to prove.
    expect(maxDifference(values?.values ?? [], expected?.values ?? [])).toBeGreaterThan(0);
    for (let row = 0; row < 9; row += 1) {
      const at = (one: typeof values) => one?.values.slice(row * width, (row + 1) * width) ?? [];
      expect(cosine(at(values), at(expected))).toBeGreaterThan(0.9995);
    }
  });

  it('weights are float16, inputs and outputs keep name and type', async () => {
    const bytes = rowsModel((builder, x) =>
      builder.node('MatMul', [x, builder.floats(numbers(width * width), [width, width])]),
    );
    const graph = graphOf(await converted(bytes, ['narrow']));
    expect(graph.initializer.map(({ dataType }) => dataType)).toEqual([float16]);
    const edges = [...graph.input, ...graph.output].map(({ name, type }) => [name, type?.tensorType?.elemType]);
    expect(edges).toEqual([
      ['x', float32],
      ['y', float32],
    ]);
    expect(graph.node.at(-1)).toMatchObject({ opType: 'Cast', output: ['y'] });
  });

  it('an epsilon, squares and sums of an old normalisation stay in float32', async () => {
    const narrowed = await converted(rowsModel(oldNormalization), ['narrow']);
    expect(typesRead(narrowed, 'Pow')).toEqual(new Set([float32]));
    expect(typesRead(narrowed, 'Add')).toEqual(new Set([float32]));
    // Values whose squares are beyond float16, and rows so even that only epsilon keeps them finite.
    const x = floatTensor([[...numbers(width, 4, 3000)], new Array<number>(width).fill(2)]);
    const [before, after] = [await runModel(rowsModel(oldNormalization), { x }), await runModel(narrowed, { x })];
    expect(maxDifference(after['y']?.values ?? [], before['y']?.values ?? [])).toBeLessThan(0.01);
  });

  it('a mask of the least float32 is clamped, and a masked softmax stays finite', async () => {
    const build = (builder: GraphBuilder, x: string): string => {
      const mask = builder.floats(Array.from({ length: width }, (_, index) => (index < 4 ? 0 : -3.4e38)));
      return builder.node('Softmax', [builder.node('Add', [x, mask])], { axis: -1 });
    };
    const narrowed = await converted(rowsModel(build), ['narrow']);
    expect(typesRead(narrowed, 'Softmax')).toEqual(new Set([float32]));
    const x = floatTensor([[...numbers(width, 5, 30)]]);
    const [before, after] = [await runModel(rowsModel(build), { x }), await runModel(narrowed, { x })];
    expect(maxDifference(after['y']?.values ?? [], before['y']?.values ?? [])).toBeLessThan(0.01);
    expect(after['y']?.values.slice(4)).toEqual(new Array<number>(width - 4).fill(0));
  });

  it('far places in a text stay apart: all that leads to a sine is float32', async () => {
    const build = (builder: GraphBuilder): void => {
      const positions = builder.node('Cast', [builder.input('positions', int64, ['n', 1])], { to: float32 });
      const angles = builder.node('Mul', [positions, builder.floats(numbers(width, 6, 1), [1, width])]);
      builder.output('y', builder.node('Mul', [builder.node('Sin', [angles]), builder.floats([0.5])]), ['n', width]);
    };
    const bytes = modelBytes(build);
    const positions = intTensor([[8190], [8191]]);
    const [before, after] = [
      await runModel(bytes, { positions }),
      await runModel(await converted(bytes, ['narrow']), { positions }),
    ];
    expect(maxDifference(after['y']?.values ?? [], before['y']?.values ?? [])).toBeLessThan(1e-3);
  });

  it('whole numbers that a float tensor is made into are not rounded to float16 first', async () => {
    const bytes = modelBytes((builder) => {
      const whole = builder.node('Cast', [builder.input('x', float32, ['n'])], { to: int64 });
      builder.output('y', builder.node('Cast', [whole], { to: float32 }), ['n']);
    });
    const narrowed = graphOf(await converted(bytes, ['narrow']));
    const toWhole = narrowed.node.find(({ attribute }) => attribute[0]?.i === BigInt(int64));
    expect(toWhole?.input).toEqual(['x']);
  });

  it('what is inside a branch stays in float32, reads what is around it, and gives the same', async () => {
    const bytes = modelBytes(
      (builder) => {
        const product = builder.node('MatMul', [
          builder.input('x', float32, ['n', width]),
          builder.floats(numbers(width * width), [width, width]),
        ]);
        const chosen = builder.node('If', [builder.input('flag', elementTypes.bool, [])]);
        builder.output('y', builder.node('Mul', [chosen, builder.floats([0.5])]), ['n', width]);
        builder.output('z', product, ['n', width]);
      },
      (graph) => {
        const branch = graph.node.find(({ opType }) => opType === 'If');
        const product = graph.node.find(({ opType }) => opType === 'MatMul')?.output[0] ?? '';
        for (const [name, opType] of [
          ['then_branch', 'Exp'],
          ['else_branch', 'Neg'],
        ] as const) {
          const output = `${name}_result`;
          const g = create(GraphProtoSchema, {
            name,
            node: [makeNode(opType, [product], [output])],
            output: [{ name: output, type: { tensorType: { elemType: float32 } } }],
          });
          branch?.attribute.push(create(AttributeProtoSchema, { name, type: 5, g }));
        }
      },
    );
    const narrowed = await converted(bytes, ['narrow']);
    expect(graphOf(narrowed).initializer.map(({ dataType }) => dataType)).toEqual([float16, float16]);
    const x = floatTensor([[...numbers(width, 7)]]);
    for (const isThen of [true, false]) {
      const feeds = { x, flag: boolTensor(isThen) };
      const [before, after] = [await runModel(bytes, feeds), await runModel(narrowed, feeds)];
      for (const name of ['y', 'z']) {
        expect(cosine(after[name]?.values ?? [], before[name]?.values ?? [])).toBeGreaterThan(0.9999);
      }
    }
  });

  it('a graph with operators of its own is refused with what to do instead', async () => {
    const bytes = modelBytes(
      (builder) => {
        builder.output('y', builder.input('x', float32, []), []);
      },
      (_, model) => {
        model.functions.push(create(FunctionProtoSchema, { name: 'own' }));
      },
    );
    await withFolder(async (folder) => {
      await mkdir(join(folder, 'onnx'));
      const path = join(folder, 'onnx/model.onnx');
      await writeFile(path, bytes);
      await expect(convertedFile(path, ['narrow'])).rejects.toThrow(ConfigurationError);
      await expect(convertedFile(path, ['narrow'])).rejects.toThrow(`${path}: holds local functions`);
    });
  });
});
