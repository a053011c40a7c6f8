/** Owns what a head should give, computed in plain TypeScript from what transformers.js gave. */
import type { RunItem, RunRow } from '../executor/protocol.ts';
import { clsPoolReference } from '../kernels/cls-pool/reference.ts';
import { denseReference } from '../kernels/dense/reference.ts';
import { labelLogitReference } from '../kernels/label-logit/reference.ts';
import { lastTokenPoolReference } from '../kernels/last-token-pool/reference.ts';
import { lateInteractionReference } from '../kernels/late-interaction/reference.ts';
import { layerNormReference } from '../kernels/layer-norm/reference.ts';
import { maxPoolReference } from '../kernels/max-pool/reference.ts';
import { meanPoolReference } from '../kernels/mean-pool/reference.ts';
import { normalizeReference } from '../kernels/normalize/reference.ts';
import { spladeReference } from '../kernels/splade/reference.ts';
import { sqrtLenPoolReference } from '../kernels/sqrt-len-pool/reference.ts';
import { mergedTokenWeightsReference, tokenWeightsReference } from '../kernels/token-weights/reference.ts';
import { weightedMeanPoolReference } from '../kernels/weighted-mean-pool/reference.ts';
import { graphOutputs } from '../model/head-source.ts';
import type { GraphHead, HeadSource } from '../model/head-source.ts';
import type { ModelManifest } from '../model/manifest.ts';
import type { TokenWeightRules } from '../model/sparse-rules.ts';
import type { DenseStep, PoolingMode, VectorStep } from '../model/vector-steps.ts';
import { loadedTensor } from '../model/weights/tensor-file.ts';
import type { LoadedTensors, TensorSource } from '../model/weights/tensor-file.ts';
import { widenFloat16 } from '../tensor/float16.ts';
import type { ReferenceOutput } from './reference-messages.ts';

/** What of a manifest decides the values. */
export type ExpectedFacts = Pick<
  ModelManifest,
  'vectorSteps' | 'rowSteps' | 'isNormalized' | 'sparse' | 'positiveLabel' | 'yesNo'
>;

/** How a head of a model comes from an output. */
export interface HeadRecipe {
  readonly head: GraphHead;
  readonly source: HeadSource;
  readonly facts: ExpectedFacts;
  /** The weights of the steps behind the encoder. */
  readonly tensors: LoadedTensors;
}

type Rows = readonly (readonly number[])[];

const poolings: Readonly<Record<PoolingMode, (rows: Rows, mask: readonly number[] | null) => number[]>> = {
  cls: clsPoolReference,
  max: maxPoolReference,
  mean: meanPoolReference,
  meanSqrtLen: sqrtLenPoolReference,
  weightedMean: weightedMeanPoolReference,
  lastToken: lastTokenPoolReference,
};

/** The numbers row by row: of the last dimension, or all as one. */
function rowsOf({ type, dims, data }: ReferenceOutput): number[][] {
  const values = type === 'float16' ? widenFloat16(data) : data;
  const width = dims.at(-1) ?? 1;
  return Array.from({ length: values.length / width }, (_, row) =>
    Array.from({ length: width }, (_value, column) => values[row * width + column] ?? NaN),
  );
}

function matrixOf(tensors: LoadedTensors, source: TensorSource): number[][] {
  const { shape, values } = loadedTensor(tensors, source);
  return rowsOf({ type: 'float32', dims: shape, data: values });
}

const vectorOf = (tensors: LoadedTensors, source: TensorSource): number[] =>
  Array.from(loadedTensor(tensors, source).values);

function denseLayer(row: readonly number[], step: DenseStep, tensors: LoadedTensors): number[] {
  const { weight, bias, activation, residual } = step;
  return denseReference(row, {
    weight: matrixOf(tensors, weight),
    bias: bias === null ? null : vectorOf(tensors, bias),
    activation,
    residual: typeof residual === 'string' ? residual : matrixOf(tensors, residual),
  });
}

function applyStep(rows: Rows, step: VectorStep, mask: readonly number[] | null, tensors: LoadedTensors): Rows {
  switch (step.kind) {
    case 'pool':
      return [step.modes.flatMap((mode) => poolings[mode](rows, mask))];
    case 'normalize':
      return rows.map(normalizeReference);
    case 'dense':
      return rows.map((row) => denseLayer(row, step, tensors));
    case 'layerNorm': {
      const [weight, bias] = [vectorOf(tensors, step.weight), vectorOf(tensors, step.bias)];
      return rows.map((row) => layerNormReference(row, weight, bias));
    }
  }
}

const applySteps = (rows: Rows, steps: readonly VectorStep[], mask: readonly number[] | null, tensors: LoadedTensors) =>
  steps.reduce((current, step) => applyStep(current, step, mask, tensors), rows);

const rowOf = (values: readonly number[], indices: readonly number[] | null = null): RunRow => ({
  values: Float32Array.from(values),
  indices: indices === null ? null : Int32Array.from(indices),
});

function expectedVector(
  rows: Rows,
  { source, facts, tensors }: HeadRecipe,
  { ids, promptTokens = 0 }: RunItem,
): RunRow {
  if (source.isComplete) return rowOf(facts.isNormalized ? normalizeReference(rows[0] ?? []) : (rows[0] ?? []));
  const mask = promptTokens === 0 ? null : Array.from(ids, (_, position) => (position < promptTokens ? 0 : 1));
  return rowOf(applySteps(rows, facts.vectorSteps, mask, tensors)[0] ?? []);
}

function expectedRows(rows: Rows, { source, facts, tensors }: HeadRecipe, { keptRows }: RunItem): RunRow {
  const own = source.isComplete ? rows : applySteps(rows, facts.rowSteps, null, tensors);
  // That output has no row for the first token: as served, it is one of zeros.
  const all = source.output.name === graphOutputs.m3Rows ? [(own[0] ?? []).map(() => 0), ...own] : own;
  const scaled = lateInteractionReference(all);
  return rowOf((keptRows === null ? scaled : Array.from(keptRows, (row) => scaled[row] ?? [])).flat());
}

function expectedTokenTerms(rows: Rows, rules: TokenWeightRules, tensors: LoadedTensors, { ids }: RunItem): RunRow {
  const { layer, unweightedIds } = rules;
  const weights =
    layer === null
      ? rows.flat()
      : tokenWeightsReference(rows, vectorOf(tensors, layer.weight), vectorOf(tensors, layer.bias)[0] ?? 0);
  const { indices, values } = mergedTokenWeightsReference(Array.from(ids), weights, unweightedIds);
  return rowOf(values, indices);
}

function expectedTerms(rows: Rows, { facts: { sparse }, tensors }: HeadRecipe, item: RunItem): RunRow {
  if (sparse === null) throw new Error('a model without rules for sparse vectors got a sparse head');
  if (sparse.form === 'tokens') return expectedTokenTerms(rows, sparse, tensors, item);
  const weights = spladeReference(rows, null, sparse);
  const indices = weights.flatMap((weight, term) => (weight > 0 ? [term] : []));
  return rowOf(
    indices.map((term) => weights[term] ?? 0),
    indices,
  );
}

function expectedLogit(rows: Rows, { facts: { yesNo, positiveLabel } }: HeadRecipe): RunRow {
  const last = rows.at(-1) ?? [];
  if (yesNo !== null) return rowOf(labelLogitReference(last, yesNo.yesId, yesNo.noId));
  return rowOf(positiveLabel === null ? last.slice(0, 1) : labelLogitReference(last, positiveLabel, 1 - positiveLabel));
}

/** What the head should give for one text. */
export function expectedRow(output: ReferenceOutput, recipe: HeadRecipe, item: RunItem): RunRow {
  const rows = rowsOf(output);
  switch (recipe.head) {
    case 'dense':
      return expectedVector(rows, recipe, item);
    case 'rows':
      return expectedRows(rows, recipe, item);
    case 'sparse':
      return expectedTerms(rows, recipe, item);
    case 'logit':
      return expectedLogit(rows, recipe);
  }
}
