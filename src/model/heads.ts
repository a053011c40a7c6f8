/**
 * Owns which kernels become which head of a model.
 *
 * The cut to `dimensions` and the integer outputs are no heads. A pooled vector of 1,024 numbers is 4 KB; cutting it
 * afterwards takes 7 microseconds and quantising it 38, while a graph output for each form would split batches by option.
 */
import { clsPool } from '../kernels/cls-pool/graph.ts';
import { dense } from '../kernels/dense/graph.ts';
import type { LayerMatrix } from '../kernels/dense/graph.ts';
import { labelLogit } from '../kernels/label-logit/graph.ts';
import { lastTokenPool } from '../kernels/last-token-pool/graph.ts';
import { lateInteraction } from '../kernels/late-interaction/graph.ts';
import { layerNorm } from '../kernels/layer-norm/graph.ts';
import { maxPool } from '../kernels/max-pool/graph.ts';
import { meanPool } from '../kernels/mean-pool/graph.ts';
import { normalize } from '../kernels/normalize/graph.ts';
import { encodeAddition } from '../kernels/onnx/append.ts';
import { createGraphBuilder, elementTypes } from '../kernels/onnx/builder.ts';
import type { GraphBuilder } from '../kernels/onnx/builder.ts';
import { toFloat32 } from '../kernels/onnx/operators.ts';
import type { GraphDescription, GraphValue } from '../kernels/onnx/read.ts';
import { splade } from '../kernels/splade/graph.ts';
import { sqrtLenPool } from '../kernels/sqrt-len-pool/graph.ts';
import { tokenWeights } from '../kernels/token-weights/graph.ts';
import { topTerms } from '../kernels/top-terms/graph.ts';
import { weightedMeanPool } from '../kernels/weighted-mean-pool/graph.ts';
import { headOutputs, poolingMaskInput, topTermOutputs } from '../executor/protocol.ts';
import { hasTopTerms } from './head-needs.ts';
import type { HeadOptions } from './head-needs.ts';
import { graphOutputs, headSource } from './head-source.ts';
import type { GraphHead, SourceFacts } from './head-source.ts';
import type { ModelManifest } from './manifest.ts';
import { emptyPastShape, pastInputs } from './past-inputs.ts';
import type { TokenWeightRules } from './sparse-rules.ts';
import type { PoolingMode, VectorStep } from './vector-steps.ts';
import { loadedTensor } from './weights/tensor-file.ts';
import type { LoadedTensors, TensorSource } from './weights/tensor-file.ts';

/** What the heads need of a manifest. */
export type HeadFacts = SourceFacts & Pick<ModelManifest, 'heads' | 'isNormalized' | 'includesPrompt'>;

const poolKernels: Readonly<
  Record<PoolingMode, (builder: GraphBuilder, hidden: string, mask: string | null) => string>
> = {
  cls: clsPool,
  max: maxPool,
  mean: meanPool,
  meanSqrtLen: sqrtLenPool,
  weightedMean: weightedMeanPool,
  lastToken: lastTokenPool,
};

/** A graph to which heads are added. */
interface HeadSite {
  readonly builder: GraphBuilder;
  readonly graph: GraphDescription;
  readonly model: HeadFacts;
  readonly tensors: LoadedTensors;
  readonly attentionMask: string | null;
  /** Mask of the tokens that are pooled: the attention mask unless the prompt is left out. */
  readonly poolingMask: string | null;
}

function matrixOf(tensors: LoadedTensors, source: TensorSource): LayerMatrix {
  const { shape, values } = loadedTensor(tensors, source);
  return { outFeatures: shape[0] ?? 0, inFeatures: shape[1] ?? 0, values };
}

function pool({ builder, model, poolingMask }: HeadSite, hidden: string, modes: readonly PoolingMode[]): string {
  const pooled = modes.map((mode) => {
    // Padding is on the right: without a prompt to leave out, the first row is the first token.
    const mask = mode === 'cls' && model.includesPrompt ? null : poolingMask;
    return poolKernels[mode](builder, hidden, mask);
  });
  return pooled.length === 1 ? (pooled[0] ?? '') : builder.node('Concat', pooled, { axis: -1 });
}

function applyStep(site: HeadSite, tensor: string, step: VectorStep): string {
  const { builder, tensors } = site;
  switch (step.kind) {
    case 'pool':
      return pool(site, tensor, step.modes);
    case 'normalize':
      return normalize(builder, tensor);
    case 'layerNorm': {
      const [weight, bias] = [loadedTensor(tensors, step.weight), loadedTensor(tensors, step.bias)];
      return layerNorm(builder, tensor, weight.values, bias.values);
    }
    case 'dense':
      return dense(builder, tensor, {
        weight: matrixOf(tensors, step.weight),
        bias: step.bias === null ? null : loadedTensor(tensors, step.bias).values,
        activation: step.activation,
        residual: typeof step.residual === 'string' ? step.residual : matrixOf(tensors, step.residual),
      });
  }
}

const applySteps = (site: HeadSite, tensor: string, steps: readonly VectorStep[]): string =>
  steps.reduce((current, step) => applyStep(site, current, step), tensor);

/** The output itself, as float32. */
const float32Source = (builder: GraphBuilder, { name, elementType }: GraphValue): string =>
  toFloat32(builder, name, elementType === 0 ? elementTypes.float32 : elementType);

/** What enters a Sigmoid at the graph's end: the score applies it, once, and the logit sorts better than its result. */
function logitSource({ builder, graph }: HeadSite, output: GraphValue): string {
  const input = graph.sigmoidInputs.get(output.name);
  // The type of a tensor inside the graph is not written down, so the conversion is made in any case.
  return input === undefined
    ? float32Source(builder, output)
    : builder.node('Cast', [input], { to: elementTypes.float32 });
}

function addLogit(site: HeadSite, output: GraphValue): void {
  const { builder, model, attentionMask } = site;
  const entry = (): string => {
    if (model.yesNo !== null) {
      const { yesId, noId } = model.yesNo;
      // The two columns before the pooling: a row of the whole vocabulary would be copied for nothing.
      const words = builder.node('Gather', [output.name, builder.ints([yesId, noId])], { axis: 2 });
      const floats = toFloat32(builder, words, output.elementType === 0 ? elementTypes.float32 : output.elementType);
      return labelLogit(builder, lastTokenPool(builder, floats, attentionMask), 0, 1);
    }
    const logits = logitSource(site, output);
    if (model.positiveLabel === null) return builder.node('Reshape', [logits, builder.ints([-1, 1])]);
    return labelLogit(builder, logits, model.positiveLabel, 1 - model.positiveLabel);
  };
  builder.output(headOutputs.logit, entry(), ['batch', 1]);
}

/** The weight of each token: by a layer over the rows, or as the graph gives it. */
function tokenWeightsOf({ builder, tensors }: HeadSite, source: string, { layer }: TokenWeightRules): string {
  if (layer === null) return builder.node('Reshape', [source, builder.ints([0, -1])]);
  const [weight, bias] = [loadedTensor(tensors, layer.weight), loadedTensor(tensors, layer.bias)];
  return tokenWeights(builder, source, weight.values, bias.values);
}

function addSparse(site: HeadSite, source: string, options: HeadOptions): void {
  const { builder, model, attentionMask } = site;
  const { sparse } = model;
  if (sparse === null) throw new Error('a model without rules for sparse vectors got a sparse head');
  if (sparse.form === 'tokens') {
    builder.output(headOutputs.sparse, tokenWeightsOf(site, source, sparse), ['batch', 'sequence']);
    return;
  }
  const weights = splade(builder, source, attentionMask, sparse);
  builder.output(headOutputs.sparse, weights, ['batch', model.vocabularySize]);
  if (options.topTerms === null || !hasTopTerms(model, options)) return;
  const top = topTerms(builder, weights, options.topTerms);
  builder.output(topTermOutputs.weights, top.weights, ['batch', options.topTerms]);
  builder.output(topTermOutputs.ids, top.ids, ['batch', options.topTerms]);
}

/** The rows with a row of zeros before them. @shape f32 [batch, rows, width] -> f32 [batch, rows + 1, width] */
function withFirstRow(builder: GraphBuilder, rows: string): string {
  const first = builder.node('Gather', [rows, builder.ints([0])], { axis: 1 });
  return builder.node('Concat', [builder.node('Mul', [first, builder.floats([0])]), rows], { axis: 1 });
}

function addHead(site: HeadSite, head: GraphHead, options: HeadOptions): void {
  const { builder, graph, model } = site;
  const found = headSource(graph, head, model);
  if (found === null) throw new Error(`no output for head ${head}: the graph was not checked`);
  const { output, isComplete } = found;
  if (head === 'logit') {
    addLogit(site, output);
    return;
  }
  const source = float32Source(builder, output);
  if (head === 'sparse') addSparse(site, source, options);
  else if (head === 'rows') {
    const rows = isComplete ? source : applySteps(site, source, model.rowSteps);
    // One row for each token, so that positions mean the same everywhere: the missing first one is zero.
    const all = output.name === graphOutputs.m3Rows ? withFirstRow(builder, rows) : rows;
    builder.output(headOutputs.rows, lateInteraction(builder, all), ['batch', 'sequence', model.rowDimension]);
  } else {
    const own = isComplete && model.isNormalized ? normalize(builder, source) : source;
    const vector = isComplete ? own : applySteps(site, source, model.vectorSteps);
    builder.output(headOutputs.dense, vector, ['batch', model.dimension]);
  }
}

/** The bytes that add the model's heads to its graph file; the same for the same graph, heads, weights and options. */
export function encodeHeads(
  graph: GraphDescription,
  model: HeadFacts,
  tensors: LoadedTensors = new Map(),
  options: HeadOptions = { topTerms: null },
): Uint8Array {
  const builder = createGraphBuilder(graph.opset);
  const attentionMask = graph.inputs.find((input) => input.name === 'attention_mask')?.name ?? null;
  const needsPoolingMask = model.heads.includes('dense') && !model.includesPrompt;
  const poolingMask = needsPoolingMask
    ? builder.input(poolingMaskInput, elementTypes.int64, ['batch', 'sequence'])
    : attentionMask;
  const site: HeadSite = { builder, graph, model, tensors, attentionMask, poolingMask };
  for (const input of pastInputs(graph)) builder.emptyDefault(input.name, input.elementType, emptyPastShape(input));
  for (const head of model.heads) {
    if (head !== 'maxSim') addHead(site, head, options);
  }
  return encodeAddition(builder.build());
}
