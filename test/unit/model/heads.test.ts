/** Owns the rules of the heads that the tiny models do not reach. */
import { describe, expect, it } from 'vitest';
import { headOutputs } from '../../../src/executor/protocol.ts';
import { createGraphBuilder, elementTypes } from '../../../src/kernels/onnx/builder.ts';
import { describeGraph } from '../../../src/kernels/onnx/read.ts';
import { spladeReference } from '../../../src/kernels/splade/reference.ts';
import { graphProblems } from '../../../src/model/graph-check.ts';
import { encodeHeads } from '../../../src/model/heads.ts';
import type { HeadFacts } from '../../../src/model/heads.ts';
import { encodeModel, floatTensor, intTensor, maxDifference, runModel } from '../kernels/run-onnx.ts';

const sizes = { hiddenSize: 3, vocabularySize: 3 };
const facts: HeadFacts = { heads: ['dense'], pooling: 'mean', isNormalized: false, ...sizes };
const rows = [
  [
    [1, -2, 3],
    [3, 4, -1],
    [9, 9, 9],
  ],
];
const mask = [[1, 1, 0]];

interface PassThrough {
  readonly output: string;
  readonly opset?: number;
  /** ONNX number of the type that the output has. */
  readonly elementType?: number;
  readonly inputNames?: readonly string[];
}

/** A graph that gives its input `fed` back as an output. */
function passThrough({
  output,
  opset = 17,
  elementType = elementTypes.float32,
  inputNames = [],
}: PassThrough): Uint8Array {
  const builder = createGraphBuilder(opset, 'model');
  const fed = builder.input('fed', elementTypes.float32, ['batch', 'sequence', 3]);
  for (const name of ['attention_mask', ...inputNames]) {
    builder.input(name, elementTypes.int64, ['batch', 'sequence']);
  }
  builder.output(output, builder.node('Cast', [fed], { to: elementType }), ['batch', 'sequence', 3]);
  return encodeModel(builder, (graph) => {
    const declared = graph.output[0]?.type?.tensorType;
    if (declared) declared.elemType = elementType;
  });
}

async function runHead(graph: Uint8Array, model: HeadFacts, output: string): Promise<readonly number[]> {
  const prepared = Buffer.concat([graph, encodeHeads(describeGraph(graph), model)]);
  const found = await runModel(prepared, { fed: floatTensor(rows), attention_mask: intTensor(mask) }, [output]);
  return found[output]?.values ?? [];
}

describe('heads', () => {
  it('a model without a Normalize module gives its vector as it is', async () => {
    const found = await runHead(passThrough({ output: 'last_hidden_state' }), facts, headOutputs.dense);
    expect(maxDifference(found, [2, 1, 1])).toBeLessThan(1e-6);
  });

  it('cls pooling takes the first row', async () => {
    const model: HeadFacts = { ...facts, pooling: 'cls' };
    const found = await runHead(passThrough({ output: 'last_hidden_state' }), model, headOutputs.dense);
    expect(maxDifference(found, [1, -2, 3])).toBeLessThan(1e-6);
  });

  it('a graph that gives float16 gets float32 heads', async () => {
    const graph = passThrough({ output: 'token_embeddings', elementType: elementTypes.float16 });
    expect(describeGraph(graph).outputs[0]?.elementType).toBe(elementTypes.float16);
    expect(maxDifference(await runHead(graph, facts, headOutputs.dense), [2, 1, 1])).toBeLessThan(1e-6);
  });

  it('the sparse head hides padding', async () => {
    const model: HeadFacts = { ...facts, heads: ['sparse'], pooling: null };
    const found = await runHead(passThrough({ output: 'logits' }), model, headOutputs.sparse);
    expect(maxDifference(found, spladeReference(rows[0] ?? [], mask[0] ?? []))).toBeLessThan(1e-6);
  });

  it('the same graph and heads give the same bytes', () => {
    const graph = describeGraph(passThrough({ output: 'last_hidden_state' }));
    expect(Buffer.from(encodeHeads(graph, facts)).equals(encodeHeads(graph, facts))).toBe(true);
  });
});

describe('graph check', () => {
  const problemsOf = (graph: PassThrough) => graphProblems(describeGraph(passThrough(graph)), 'encoder', sizes);

  it('names everything that is wrong at once', () => {
    const problems = problemsOf({ output: 'pooled', opset: 10, inputNames: ['position_ids'] });
    expect(problems).toEqual([
      'has no input input_ids',
      'asks for inputs that are not known: fed, position_ids',
      'is written in operator set 10, at least 11 is needed',
      'has no output last_hidden_state or token_embeddings, only: pooled [batch, sequence, 3]',
    ]);
  });

  it('a graph that was prepared before is refused', () => {
    expect(problemsOf({ output: headOutputs.rows })[2]).toContain('has an output trivec_rows already');
  });
});
