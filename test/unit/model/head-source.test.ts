/** Owns the rules of which output of a graph a head reads, and of what it makes of nothing but zeros. */
import { describe, expect, it } from 'vitest';
import { headOutputs } from '../../../src/executor/protocol.ts';
import { createGraphBuilder, elementTypes } from '../../../src/kernels/onnx/builder.ts';
import { describeGraph } from '../../../src/kernels/onnx/read.ts';
import { graphProblems } from '../../../src/model/graph-check.ts';
import { encodeHeads } from '../../../src/model/heads.ts';
import type { HeadFacts } from '../../../src/model/heads.ts';
import { plainSplade } from '../../../src/model/sparse-rules.ts';
import { tensorKey } from '../../../src/model/weights/tensor-file.ts';
import type { LoadedTensors, TensorSource } from '../../../src/model/weights/tensor-file.ts';
import { encodeModel, floatTensor, intTensor, runModel } from '../kernels/run-onnx.ts';

const facts: HeadFacts = {
  heads: ['dense'],
  vectorSteps: [{ kind: 'pool', modes: ['mean'] }],
  rowSteps: [],
  dimension: 2,
  rowDimension: 2,
  hiddenSize: 2,
  vocabularySize: 2,
  isNormalized: false,
  includesPrompt: true,
  sparse: null,
  positiveLabel: null,
  yesNo: null,
};

/** A graph that gives what it is fed as each of the outputs, multiplied by a factor of its own. */
function graphOf(
  outputs: readonly (readonly [name: string, factor: number, isPooled?: boolean])[],
  elementType: number = elementTypes.float32,
): Uint8Array {
  const builder = createGraphBuilder(17, 'model');
  const fed = builder.input('fed', elementTypes.float32, ['batch', 'sequence', 2]);
  builder.input('attention_mask', elementTypes.int64, ['batch', 'sequence']);
  for (const [name, factor, isPooled = false] of outputs) {
    const scaled = builder.node('Mul', [fed, builder.floats([factor], [1])]);
    const values = isPooled ? builder.node('Squeeze', [scaled, builder.ints([0])]) : scaled;
    builder.output(
      name,
      builder.node('Cast', [values], { to: elementType }),
      isPooled ? ['batch', 2] : ['batch', 'sequence', 2],
    );
  }
  return encodeModel(builder, (graph) => {
    for (const { type } of graph.output) {
      if (type?.tensorType && type.tensorType.elemType !== 0) type.tensorType.elemType = elementType;
    }
  });
}

async function runHead(graph: Uint8Array, model: HeadFacts, output: string, rows: number[][], tensors?: LoadedTensors) {
  const prepared = Buffer.concat([graph, encodeHeads(describeGraph(graph), model, tensors)]);
  const feeds = { fed: floatTensor([rows]), attention_mask: intTensor([rows.map(() => 1)]) };
  return (await runModel(prepared, feeds, [output]))[output]?.values;
}

const rows = [
  [1, 2],
  [3, 4],
];

describe('a graph with several outputs', () => {
  it('is read at the one whose name says what it is, wherever that stands', async () => {
    for (const outputs of [
      [
        ['hidden_layer_3', 10],
        ['last_hidden_state', 1],
      ],
      [
        ['last_hidden_state', 1],
        ['hidden_layer_3', 10],
      ],
      [
        ['attention_rollout', 10],
        ['token_embeddings', 1],
        ['gates', 100],
      ],
    ] as const) {
      expect(await runHead(graphOf(outputs), facts, headOutputs.dense, rows)).toEqual([2, 3]);
    }
  });

  it('is pooled from its rows, never read at a pooled output that no configuration asks for', async () => {
    const graph = graphOf([
      ['pooler_output', 10, true],
      ['last_hidden_state', 1],
    ]);
    expect(await runHead(graph, facts, headOutputs.dense, rows)).toEqual([2, 3]);
    expect(graphProblems(describeGraph(graphOf([['pooler_output', 10, true]])), ['dense'], facts).at(-1)).toContain(
      'pooler_output [batch, 2]',
    );
  });

  it('of which none is named and two have the shape is refused with all of them', () => {
    const graph = describeGraph(
      graphOf([
        ['first', 1],
        ['second', 1],
      ]),
    );
    expect(graphProblems(graph, ['dense'], facts).at(-1)).toMatch(/first \[.*\]; second \[.*\]$/u);
  });
});

describe('nothing but zeros', () => {
  const source = (name: string): TensorSource => ({ path: '/weights', name });
  const zeroLayer = {
    kind: 'dense',
    inFeatures: 2,
    outFeatures: 2,
    weight: source('weight'),
    bias: null,
    activation: 'identity',
    residual: 'none',
  } as const;
  const tensors: LoadedTensors = new Map([
    [tensorKey(source('weight')), { shape: [2, 2], values: new Float32Array(4) }],
  ]);
  const zeros = [
    [0, 0],
    [0, 0],
  ];

  it.each([
    ['float32', elementTypes.float32],
    ['float16', elementTypes.float16],
  ])('from a graph of %s stay zeros in every head', async (_, elementType) => {
    const graph = graphOf([['last_hidden_state', 1]], elementType);
    const normalized: HeadFacts = { ...facts, vectorSteps: [...facts.vectorSteps, { kind: 'normalize' }] };
    expect(await runHead(graph, normalized, headOutputs.dense, zeros)).toEqual([0, 0]);
    const withRows: HeadFacts = { ...facts, heads: ['rows'] };
    expect(await runHead(graph, withRows, headOutputs.rows, zeros)).toEqual([0, 0, 0, 0]);
    const sparse: HeadFacts = { ...facts, heads: ['sparse'], sparse: plainSplade };
    const logits = graphOf([['logits', 1]], elementType);
    expect(await runHead(logits, sparse, headOutputs.sparse, zeros)).toEqual([0, 0]);
  });

  it.each([
    ['float32', elementTypes.float32],
    ['float16', elementTypes.float16],
  ])('from a layer behind a graph of %s stay zeros', async (_, elementType) => {
    const graph = graphOf([['last_hidden_state', 1]], elementType);
    const steps: HeadFacts['vectorSteps'] = [...facts.vectorSteps, zeroLayer, { kind: 'normalize' }];
    expect(await runHead(graph, { ...facts, vectorSteps: steps }, headOutputs.dense, rows, tensors)).toEqual([0, 0]);
  });
});
