/** Owns the rules of the heads that the tiny models do not reach. */
import { describe, expect, it } from 'vitest';
import { headOutputs, poolingMaskInput, topTermOutputs } from '../../../src/executor/protocol.ts';
import { denseReference } from '../../../src/kernels/dense/reference.ts';
import { createGraphBuilder, elementTypes } from '../../../src/kernels/onnx/builder.ts';
import { describeGraph } from '../../../src/kernels/onnx/read.ts';
import { normalizeReference } from '../../../src/kernels/normalize/reference.ts';
import { spladeReference } from '../../../src/kernels/splade/reference.ts';
import { tokenWeightsReference } from '../../../src/kernels/token-weights/reference.ts';
import { graphProblems } from '../../../src/model/graph-check.ts';
import { encodeHeads } from '../../../src/model/heads.ts';
import type { HeadFacts } from '../../../src/model/heads.ts';
import type { HeadOptions } from '../../../src/model/head-needs.ts';
import { plainSplade } from '../../../src/model/sparse-rules.ts';
import type { VectorStep } from '../../../src/model/vector-steps.ts';
import { tensorKey } from '../../../src/model/weights/tensor-file.ts';
import type { LoadedTensors, TensorSource } from '../../../src/model/weights/tensor-file.ts';
import { encodeModel, floatTensor, intTensor, maxDifference, runModel } from '../kernels/run-onnx.ts';
import type { Output } from '../kernels/run-onnx.ts';

const mean: VectorStep = { kind: 'pool', modes: ['mean'] };
const facts: HeadFacts = {
  heads: ['dense'],
  vectorSteps: [mean],
  rowSteps: [],
  dimension: 3,
  rowDimension: 3,
  hiddenSize: 3,
  vocabularySize: 3,
  isNormalized: false,
  includesPrompt: true,
  sparse: null,
  positiveLabel: null,
  yesNo: null,
};
const rows = [
  [
    [1, -2, 3],
    [3, 4, -1],
    [9, 9, 9],
  ],
];
const mask = [[1, 1, 0]];
const weight = [
  [1, 0, -1],
  [0.5, 2, 0],
];
const bias = [0.25, -0.5];
const source = (name: string): TensorSource => ({ path: '/weights', name });
const tensors: LoadedTensors = new Map([
  [tensorKey(source('weight')), { shape: [2, 3], values: Float32Array.from(weight.flat()) }],
  [tensorKey(source('bias')), { shape: [2], values: Float32Array.from(bias) }],
  [tensorKey(source('lexical')), { shape: [1, 3], values: Float32Array.of(0.5, 0.25, -1) }],
  [tensorKey(source('one')), { shape: [1], values: Float32Array.of(0.125) }],
]);
const project: VectorStep = {
  kind: 'dense',
  inFeatures: 3,
  outFeatures: 2,
  weight: source('weight'),
  bias: source('bias'),
  activation: 'tanh',
  residual: 'none',
};
const layer = { weight, bias, activation: 'tanh', residual: 'none' } as const;

interface PassThrough {
  readonly output: string;
  readonly opset?: number;
  /** ONNX number of the type that the output has. */
  readonly elementType?: number;
  readonly inputNames?: readonly string[];
  readonly hasMask?: boolean;
}

/** A graph that gives its input `fed` back as an output. */
function passThrough({
  output,
  opset = 17,
  elementType = elementTypes.float32,
  inputNames = [],
  hasMask = true,
}: PassThrough): Uint8Array {
  const builder = createGraphBuilder(opset, 'model');
  const fed = builder.input('fed', elementTypes.float32, ['batch', 'sequence', 3]);
  for (const name of [...(hasMask ? ['attention_mask'] : []), ...inputNames]) {
    builder.input(name, elementTypes.int64, ['batch', 'sequence']);
  }
  builder.output(output, builder.node('Cast', [fed], { to: elementType }), ['batch', 'sequence', 3]);
  return encodeModel(builder, (graph) => {
    const declared = graph.output[0]?.type?.tensorType;
    if (declared) declared.elemType = elementType;
  });
}

/** The outputs of a graph with its heads. */
async function runHeads(
  graph: Uint8Array,
  model: HeadFacts,
  outputs: readonly string[],
  options: HeadOptions = { topTerms: null },
  poolingMask: number[][] | null = null,
): Promise<Record<string, Output>> {
  const prepared = Buffer.concat([graph, encodeHeads(describeGraph(graph), model, tensors, options)]);
  const feeds = {
    fed: floatTensor(rows),
    attention_mask: intTensor(mask),
    ...(poolingMask === null ? {} : { [poolingMaskInput]: intTensor(poolingMask) }),
  };
  return runModel(prepared, feeds, outputs);
}

async function runHead(graph: Uint8Array, model: HeadFacts, output: string): Promise<readonly number[]> {
  return (await runHeads(graph, model, [output]))[output]?.values ?? [];
}

describe('heads', () => {
  const encoder = passThrough({ output: 'last_hidden_state' });

  it('a model without a Normalize module gives its vector as it is', async () => {
    expect(maxDifference(await runHead(encoder, facts, headOutputs.dense), [2, 1, 1])).toBeLessThan(1e-6);
  });

  it('cls pooling takes the first row', async () => {
    const model: HeadFacts = { ...facts, vectorSteps: [{ kind: 'pool', modes: ['cls'] }] };
    expect(maxDifference(await runHead(encoder, model, headOutputs.dense), [1, -2, 3])).toBeLessThan(1e-6);
  });

  it('several poolings are joined in their order', async () => {
    const modes = ['cls', 'max', 'mean', 'meanSqrtLen', 'weightedMean', 'lastToken'] as const;
    const model: HeadFacts = { ...facts, vectorSteps: [{ kind: 'pool', modes }], dimension: 18 };
    const root = Math.SQRT2;
    const expected = [1, -2, 3, 3, 4, 3, 2, 1, 1, 4 / root, 2 / root, 2 / root, 7 / 3, 2, 1 / 3, 3, 4, -1];
    expect(maxDifference(await runHead(encoder, model, headOutputs.dense), expected)).toBeLessThan(1e-6);
  });

  it('the steps behind the pooling are applied in their order', async () => {
    const model: HeadFacts = { ...facts, vectorSteps: [mean, project, { kind: 'normalize' }], dimension: 2 };
    const expected = normalizeReference(denseReference([2, 1, 1], layer));
    expect(maxDifference(await runHead(encoder, model, headOutputs.dense), expected)).toBeLessThan(1e-6);
  });

  it('rows are projected, then scaled to length 1', async () => {
    const model: HeadFacts = { ...facts, heads: ['rows'], rowSteps: [project], rowDimension: 2 };
    const expected = (rows[0] ?? []).flatMap((row) => normalizeReference(denseReference(row, layer)));
    expect(maxDifference(await runHead(encoder, model, headOutputs.rows), expected)).toBeLessThan(1e-6);
  });

  it('rows that the graph has projected are not projected again', async () => {
    const projected = passThrough({ output: 'contextual' });
    const model: HeadFacts = { ...facts, heads: ['rows'], hiddenSize: 8, rowSteps: [project], rowDimension: 3 };
    const expected = (rows[0] ?? []).flatMap((row) => normalizeReference(row));
    expect(maxDifference(await runHead(projected, model, headOutputs.rows), expected)).toBeLessThan(1e-6);
  });

  it('a prompt that is left out of the pooling is masked by an input of its own', async () => {
    const model: HeadFacts = {
      ...facts,
      includesPrompt: false,
      vectorSteps: [{ kind: 'pool', modes: ['cls', 'mean'] }],
    };
    const found = await runHeads(encoder, { ...model, dimension: 6 }, [headOutputs.dense], undefined, [[0, 1, 0]]);
    const values = found[headOutputs.dense]?.values ?? [];
    expect(maxDifference(values, [3, 4, -1, 3, 4, -1])).toBeLessThan(1e-6);
  });

  it('a graph that gives float16 gets float32 heads', async () => {
    const graph = passThrough({ output: 'token_embeddings', elementType: elementTypes.float16 });
    expect(describeGraph(graph).outputs[0]?.elementType).toBe(elementTypes.float16);
    expect(maxDifference(await runHead(graph, facts, headOutputs.dense), [2, 1, 1])).toBeLessThan(1e-6);
  });

  it('one graph gives the vector, the weight of each token and the rows', async () => {
    const sparse = {
      form: 'tokens',
      layer: { weight: source('lexical'), bias: source('one') },
      unweightedIds: [],
    } as const;
    const model: HeadFacts = {
      ...facts,
      heads: ['dense', 'sparse', 'rows'],
      sparse,
      rowSteps: [project],
      rowDimension: 2,
    };
    const found = await runHeads(encoder, model, [headOutputs.dense, headOutputs.sparse, headOutputs.rows]);
    const expected = tokenWeightsReference(rows[0] ?? [], [0.5, 0.25, -1], 0.125);
    expect(found[headOutputs.sparse]?.dims).toEqual([1, 3]);
    expect(maxDifference(found[headOutputs.sparse]?.values ?? [], expected)).toBeLessThan(1e-6);
    expect(found[headOutputs.dense]?.dims).toEqual([1, 3]);
    expect(found[headOutputs.rows]?.dims).toEqual([1, 3, 2]);
  });

  it('the same graph and heads give the same bytes', () => {
    const graph = describeGraph(encoder);
    expect(Buffer.from(encodeHeads(graph, facts)).equals(encodeHeads(graph, facts))).toBe(true);
  });
});

describe('the sparse head', () => {
  const graph = passThrough({ output: 'logits' });
  const model: HeadFacts = { ...facts, heads: ['sparse'], sparse: plainSplade };

  it('hides padding', async () => {
    const expected = spladeReference(rows[0] ?? [], mask[0] ?? []);
    expect(maxDifference(await runHead(graph, model, headOutputs.sparse), expected)).toBeLessThan(1e-6);
  });

  it('has the heaviest terms beside the full row where a device asks for them', async () => {
    const outputs = [headOutputs.sparse, topTermOutputs.weights, topTermOutputs.ids];
    const found = await runHeads(graph, model, outputs, { topTerms: 2 });
    const full = found[headOutputs.sparse]?.values ?? [];
    expect(found[topTermOutputs.ids]?.values).toEqual([1, 0]);
    expect(found[topTermOutputs.weights]?.values).toEqual([full[1], full[0]]);
  });

  it('has no such outputs where the row is no longer than they are', () => {
    const described = describeGraph(graph);
    const plain = encodeHeads(described, model);
    expect(Buffer.from(encodeHeads(described, model, tensors, { topTerms: 3 })).equals(plain)).toBe(true);
  });
});

describe('the score of a reranker', () => {
  it('is the difference of the logits where a classifier has two labels', async () => {
    const builder = createGraphBuilder(17, 'model');
    builder.output('logits', builder.input('fed', elementTypes.float32, ['batch', 2]), ['batch', 2]);
    const graph = encodeModel(builder);
    const model: HeadFacts = { ...facts, heads: ['logit'], positiveLabel: 1 };
    const prepared = Buffer.concat([graph, encodeHeads(describeGraph(graph), model)]);
    const found = await runModel(
      prepared,
      {
        fed: floatTensor([
          [0.5, 2],
          [3, -1],
        ]),
      },
      [headOutputs.logit],
    );
    expect(found[headOutputs.logit]).toEqual({ values: [1.5, -4], dims: [2, 1] });
  });

  it('is the difference of two words at the last real token where a generative model answers', async () => {
    const yesNo = { yesId: 2, noId: 0, prefix: '', body: '', suffix: '', instruction: '' };
    const model: HeadFacts = { ...facts, heads: ['logit'], yesNo };
    expect(await runHead(passThrough({ output: 'logits' }), model, headOutputs.logit)).toEqual([-4]);
  });
});

describe('graph check', () => {
  const problemsOf = (graph: PassThrough) => graphProblems(describeGraph(passThrough(graph)), ['dense'], facts);

  it('names everything that is wrong at once', () => {
    const problems = problemsOf({
      output: 'pooled',
      opset: 10,
      inputNames: ['task_id'],
      elementType: elementTypes.int64,
    });
    expect(problems).toEqual([
      'has no input input_ids',
      'asks for inputs that are not known: fed, task_id',
      'is written in operator set 10, at least 11 is needed',
      'has no output last_hidden_state or token_embeddings and not one output of the shape [batch, sequence, 3], ' +
        'only: pooled [batch, sequence, 3]',
    ]);
  });

  it('an output of an unusual name will do where it alone has the shape', () => {
    expect(problemsOf({ output: 'encoder_states', inputNames: ['input_ids'] })[0]).toContain('not known: fed');
    expect(problemsOf({ output: 'encoder_states', inputNames: ['input_ids'] })).toHaveLength(1);
  });

  it('a graph that was prepared before is refused', () => {
    expect(problemsOf({ output: headOutputs.rows })[2]).toContain('has an output trivec_rows already');
  });
});
