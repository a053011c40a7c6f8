/** Owns which kernels become which head of a model. */
import { clsPool } from '../kernels/cls-pool/graph.ts';
import { lateInteraction } from '../kernels/late-interaction/graph.ts';
import { meanPool } from '../kernels/mean-pool/graph.ts';
import { normalize } from '../kernels/normalize/graph.ts';
import { encodeAddition } from '../kernels/onnx/append.ts';
import { createGraphBuilder, elementTypes } from '../kernels/onnx/builder.ts';
import type { GraphBuilder } from '../kernels/onnx/builder.ts';
import { toFloat32 } from '../kernels/onnx/operators.ts';
import type { GraphDescription, GraphValue } from '../kernels/onnx/read.ts';
import { splade } from '../kernels/splade/graph.ts';
import { headOutputs } from '../executor/protocol.ts';
import type { Head } from '../executor/protocol.ts';
import { sourceOutput } from './graph-check.ts';
import type { ModelManifest } from './manifest.ts';
import type { ModelRole } from './role.ts';

/** Role that has each head; `maxSim` is no part of a model's graph. */
const roleOfHead: Readonly<Record<Exclude<Head, 'maxSim'>, ModelRole>> = {
  dense: 'encoder',
  rows: 'encoder',
  sparse: 'maskedLanguageModel',
  logit: 'crossEncoder',
};

/** What the heads need of a manifest. */
export type HeadFacts = Pick<ModelManifest, 'heads' | 'pooling' | 'isNormalized' | 'hiddenSize' | 'vocabularySize'>;

function dense(builder: GraphBuilder, hidden: string, mask: string | null, model: HeadFacts): string {
  const pooled = model.pooling === 'cls' ? clsPool(builder, hidden) : meanPool(builder, hidden, mask);
  return model.isNormalized ? normalize(builder, pooled) : pooled;
}

/** The output itself, as float32. */
const float32Source = (builder: GraphBuilder, { name, elementType }: GraphValue): string =>
  toFloat32(builder, name, elementType === 0 ? elementTypes.float32 : elementType);

/** What enters a Sigmoid at the graph's end: the score applies it, once, and the logit sorts better than its result. */
function logitSource(builder: GraphBuilder, output: GraphValue, graph: GraphDescription): string {
  const input = graph.sigmoidInputs.get(output.name);
  // The type of a tensor inside the graph is not written down, so the conversion is made in any case.
  return input === undefined
    ? float32Source(builder, output)
    : builder.node('Cast', [input], { to: elementTypes.float32 });
}

function addHead(
  builder: GraphBuilder,
  head: Exclude<Head, 'maxSim'>,
  graph: GraphDescription,
  model: HeadFacts,
): void {
  const output = sourceOutput(graph, roleOfHead[head]);
  if (output === null) throw new Error(`no output for head ${head}: the graph was not checked`);
  const source = head === 'logit' ? logitSource(builder, output, graph) : float32Source(builder, output);
  const mask = graph.inputs.find((input) => input.name === 'attention_mask')?.name ?? null;
  const add = (tensor: string, shape: readonly (number | string)[]): void => {
    builder.output(headOutputs[head], tensor, shape);
  };
  if (head === 'dense') add(dense(builder, source, mask, model), ['batch', model.hiddenSize]);
  else if (head === 'rows') add(lateInteraction(builder, source), ['batch', 'sequence', model.hiddenSize]);
  else if (head === 'sparse') add(splade(builder, source, mask), ['batch', model.vocabularySize]);
  else add(builder.node('Reshape', [source, builder.ints([-1, 1])]), ['batch', 1]);
}

/** The bytes that add the model's heads to its graph file; the same for the same graph and heads. */
export function encodeHeads(graph: GraphDescription, model: HeadFacts): Uint8Array {
  const builder = createGraphBuilder(graph.opset);
  for (const head of model.heads) {
    if (head !== 'maxSim') addHead(builder, head, graph, model);
  }
  return encodeAddition(builder.build());
}
