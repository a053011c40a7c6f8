/** Owns the rules of which graph file a model has and how it may be run. */
import { describe, expect, it } from 'vitest';
import { headOutputs } from '../../../src/executor/protocol.ts';
import { createGraphBuilder, elementTypes } from '../../../src/kernels/onnx/builder.ts';
import { describeGraph } from '../../../src/kernels/onnx/read.ts';
import type { GraphDescription } from '../../../src/kernels/onnx/read.ts';
import { graphProblems } from '../../../src/model/graph-check.ts';
import { possibleVariants } from '../../../src/model/graph-variant.ts';
import { encodeHeads } from '../../../src/model/heads.ts';
import type { HeadFacts } from '../../../src/model/heads.ts';
import { pastInputs } from '../../../src/model/past-inputs.ts';
import { runPolicyOf, runPolicyProblems } from '../../../src/model/run-policy.ts';
import { encodeModel, floatTensor, runModel } from '../kernels/run-onnx.ts';

const graphWith = (
  batch: number | string,
  tokens: number | string,
  inputs: readonly string[],
  operators: readonly string[] = [],
): GraphDescription => ({
  opset: 17,
  inputs: inputs.map((name) => ({ name, elementType: elementTypes.int64, shape: [batch, tokens] })),
  outputs: [],
  externalFiles: [],
  operators: new Set(operators),
  weightType: 'float32',
  tableRows: { tokens: null, positions: null },
  hasFunctions: false,
  sigmoidInputs: new Map(),
});
const both = ['input_ids', 'attention_mask'];

describe('run policy', () => {
  it.each([
    ['free dimensions with a mask', graphWith('b', 's', both), { kind: 'padded', fixedBatch: null, fixedTokens: null }],
    ['no mask', graphWith('b', 's', ['input_ids']), { kind: 'equalLength', fixedBatch: null, fixedTokens: null }],
    ['a batch of one', graphWith(1, 's', both), { kind: 'alone', fixedBatch: null, fixedTokens: null }],
    ['a fixed batch', graphWith(8, 's', both), { kind: 'padded', fixedBatch: 8, fixedTokens: null }],
    ['a fixed length', graphWith('b', 128, both), { kind: 'padded', fixedBatch: null, fixedTokens: 128 }],
    [
      'activations that are quantised while running',
      graphWith('b', 's', both, ['MatMulInteger', 'DynamicQuantizeLinear']),
      { kind: 'alone', fixedBatch: null, fixedTokens: null },
    ],
  ])('%s', (_, graph, policy) => {
    expect(runPolicyOf(graph)).toEqual(policy);
    expect(runPolicyProblems(graph, runPolicyOf(graph))).toEqual([]);
  });

  it('a fixed length without a mask, and a fixed batch that shares one scale, cannot be run', () => {
    for (const graph of [graphWith('b', 128, ['input_ids']), graphWith(4, 's', both, ['DynamicQuantizeLinear'])]) {
      expect(runPolicyProblems(graph, runPolicyOf(graph))).toHaveLength(1);
    }
  });
});

describe('graph files', () => {
  it('a file of the catalogue goes before those that exporters write', () => {
    const [first, ...rest] = possibleVariants('vespa_colbert.onnx', 'x64');
    expect(first).toEqual({ path: 'vespa_colbert.onnx', precision: 'fp32' });
    expect(rest).toEqual(possibleVariants(null, 'x64'));
  });

  it('a file for another processor is none', () => {
    const paths = (arch: string) => possibleVariants(null, arch).map(({ path }) => path);
    expect(paths('x64')).not.toContain('onnx/model_qint8_arm64.onnx');
    expect(paths('arm64')).not.toContain('onnx/model_qint8_avx512_vnni.onnx');
    expect(paths('arm64')).toContain('onnx/model_qint8_arm64.onnx');
  });
});

describe('a decoder with inputs for what it has read before', () => {
  /** Rows are what was read before, then what is read now. */
  function decoder(): Uint8Array {
    const builder = createGraphBuilder(17, 'model');
    const past = builder.input('past_key_values.0.key', elementTypes.float32, ['batch', 2, 'past', 3]);
    const now = builder.input('now', elementTypes.float32, ['batch', 2, 'sequence', 3]);
    const all = builder.node('Concat', [past, now], { axis: 2 });
    const rows = builder.node('Reshape', [all, builder.ints([0, -1, 3])]);
    builder.output('last_hidden_state', rows, ['batch', 'sequence', 3]);
    return encodeModel(builder);
  }
  const facts: HeadFacts = {
    heads: ['dense'],
    vectorSteps: [{ kind: 'pool', modes: ['lastToken'] }],
    rowSteps: [],
    dimension: 3,
    rowDimension: 3,
    hiddenSize: 3,
    vocabularySize: 8,
    isNormalized: false,
    includesPrompt: true,
    sparse: null,
    positiveLabel: null,
    yesNo: null,
  };

  it('runs as an encoder: the inputs get an empty default, for one text a run', async () => {
    const graph = describeGraph(decoder());
    expect(pastInputs(graph).map(({ name }) => name)).toEqual(['past_key_values.0.key']);
    // `now` stands for the ids here; it is the only input that is not known.
    expect(graphProblems(graph, ['dense'], facts)).toEqual([
      'has no input input_ids',
      'asks for inputs that are not known: now',
    ]);
    expect(runPolicyOf(graph).kind).toBe('alone');
    const prepared = Buffer.concat([decoder(), encodeHeads(graph, facts)]);
    const now = floatTensor([[[[1, 2, 3]], [[4, 5, 6]]]]);
    const found = await runModel(prepared, { now }, [headOutputs.dense]);
    expect(found[headOutputs.dense]).toEqual({ values: [4, 5, 6], dims: [1, 3] });
  });
});
