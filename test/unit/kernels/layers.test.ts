/** Owns the check of the kernels that take weights or give something else than pooled rows, on the shared cases. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { dense } from '../../../src/kernels/dense/graph.ts';
import type { DenseLayer } from '../../../src/kernels/dense/graph.ts';
import { denseReference } from '../../../src/kernels/dense/reference.ts';
import type { DenseReferenceLayer } from '../../../src/kernels/dense/reference.ts';
import { labelLogit } from '../../../src/kernels/label-logit/graph.ts';
import { labelLogitReference } from '../../../src/kernels/label-logit/reference.ts';
import { layerNorm } from '../../../src/kernels/layer-norm/graph.ts';
import { layerNormReference } from '../../../src/kernels/layer-norm/reference.ts';
import { createGraphBuilder, elementTypes } from '../../../src/kernels/onnx/builder.ts';
import type { GraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import { tokenWeights } from '../../../src/kernels/token-weights/graph.ts';
import { mergedTokenWeightsReference, tokenWeightsReference } from '../../../src/kernels/token-weights/reference.ts';
import { topTerms } from '../../../src/kernels/top-terms/graph.ts';
import { topTermsReference } from '../../../src/kernels/top-terms/reference.ts';
import { mergeTokenWeights } from '../../../src/tensor/token-terms.ts';
import { itInEveryOpset, toleranceOn } from './engines.ts';
import { encodeModel, flatten, floatTensor, maxDifference, runModel } from './run-onnx.ts';
import type { Engine, Nested, Output } from './run-onnx.ts';

interface CaseFile<Case> {
  readonly tolerance: number;
  readonly cases: readonly (Case & { readonly name: string })[];
}

const read = (kernel: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../../src/kernels/${kernel}/cases.json`, import.meta.url), 'utf8'));

/** The outputs of a graph with one input, under the names `result`, `result1`, … */
async function runKernel(
  opset: number,
  values: Nested,
  rank: number,
  build: (builder: GraphBuilder, tensor: string) => readonly string[],
  engine: Engine,
): Promise<Output[]> {
  const builder = createGraphBuilder(opset);
  const shape = ['batch', 'sequence', 'width'].slice(3 - rank);
  const input = builder.input('values', elementTypes.float32, shape);
  const names = build(builder, input).map((tensor, index) => {
    const name = `result${String(index)}`;
    builder.output(name, tensor, []);
    return name;
  });
  const found = await runModel(
    encodeModel(builder, (graph) => {
      for (const { type } of graph.output) if (type?.tensorType) delete type.tensorType.shape;
    }),
    { values: floatTensor(values) },
    names,
    engine,
  );
  return names.map((name) => found[name] ?? { values: [], dims: [] });
}

const matrix = (rows: readonly (readonly number[])[]) => ({
  outFeatures: rows.length,
  inFeatures: rows[0]?.length ?? 0,
  values: rows.flat(),
});

interface DenseCase {
  readonly vectors: number[][];
  readonly layer: DenseReferenceLayer;
  readonly expected: number[][];
}

const graphLayer = (layer: DenseReferenceLayer): DenseLayer => ({
  ...layer,
  weight: matrix(layer.weight),
  residual: typeof layer.residual === 'string' ? layer.residual : matrix(layer.residual),
});

describe('kernel dense', () => {
  const { cases, tolerance } = read('dense') as CaseFile<DenseCase>;

  it.each(cases)('the reference gives the numbers worked out by hand: $name', ({ vectors, layer, expected }) => {
    const found = vectors.map((vector) => denseReference(vector, layer));
    expect(maxDifference(flatten(found), flatten(expected))).toBeLessThanOrEqual(tolerance);
  });

  itInEveryOpset('the graph equals the reference, for vectors and for rows,', async (opset, engine) => {
    // One graph for all layers of the same input: making a session is what takes the time.
    for (const input of new Set(cases.map(({ vectors }) => JSON.stringify(vectors)))) {
      const layers = cases.filter((one) => JSON.stringify(one.vectors) === input);
      const vectors = JSON.parse(input) as number[][];
      for (const values of [vectors, [vectors]]) {
        const rank = values === vectors ? 2 : 3;
        const build = (builder: GraphBuilder, tensor: string) =>
          layers.map(({ layer }) => dense(builder, tensor, graphLayer(layer)));
        const found = await runKernel(opset, values, rank, build, engine);
        for (const [index, { layer }] of layers.entries()) {
          const expected = flatten(vectors.map((vector) => denseReference(vector, layer)));
          const difference = maxDifference(found[index]?.values ?? [], expected);
          expect(difference).toBeLessThanOrEqual(toleranceOn(engine, tolerance));
        }
      }
    }
  });
});

interface LayerNormCase {
  readonly vectors: number[][];
  readonly weight: number[];
  readonly bias: number[];
  readonly expected: number[][];
}

describe('kernel layer-norm', () => {
  const { cases, tolerance } = read('layer-norm') as CaseFile<LayerNormCase>;

  it.each(cases)('the reference gives the numbers worked out by hand: $name', ({ vectors, weight, bias, expected }) => {
    const found = vectors.map((vector) => layerNormReference(vector, weight, bias));
    expect(maxDifference(flatten(found), flatten(expected))).toBeLessThanOrEqual(tolerance);
  });

  itInEveryOpset('the graph equals the reference', async (opset, engine) => {
    for (const { vectors, weight, bias } of cases) {
      const expected = flatten(vectors.map((vector) => layerNormReference(vector, weight, bias)));
      const build = (builder: GraphBuilder, tensor: string) => [layerNorm(builder, tensor, weight, bias)];
      const [found] = await runKernel(opset, vectors, 2, build, engine);
      expect(maxDifference(found?.values ?? [], expected)).toBeLessThanOrEqual(toleranceOn(engine, tolerance));
    }
  });
});

interface TokenWeightCase {
  readonly hidden: number[][][];
  readonly weight: number[];
  readonly bias: number;
  readonly expected: number[][];
}

interface MergeCase {
  readonly name: string;
  readonly ids: number[];
  readonly weights: number[];
  readonly unweightedIds: number[];
  readonly expected: { readonly indices: number[]; readonly values: number[] };
}

describe('kernel token-weights', () => {
  const { cases, tolerance, merged } = read('token-weights') as CaseFile<TokenWeightCase> & { merged: MergeCase[] };

  it.each(cases)('the reference gives the numbers worked out by hand: $name', ({ hidden, weight, bias, expected }) => {
    const found = hidden.map((rows) => tokenWeightsReference(rows, weight, bias));
    expect(maxDifference(flatten(found), flatten(expected))).toBeLessThanOrEqual(tolerance);
  });

  itInEveryOpset('the graph equals the reference', async (opset, engine) => {
    for (const { hidden, weight, bias } of cases) {
      const expected = hidden.map((rows) => tokenWeightsReference(rows, weight, bias));
      const build = (builder: GraphBuilder, tensor: string) => [tokenWeights(builder, tensor, weight, [bias])];
      const [found] = await runKernel(opset, hidden, 3, build, engine);
      expect(found?.dims).toEqual([hidden.length, hidden[0]?.length]);
      expect(maxDifference(found?.values ?? [], flatten(expected))).toBeLessThanOrEqual(toleranceOn(engine, tolerance));
    }
  });

  it.each(merged)('merging: $name', ({ ids, weights, unweightedIds, expected }) => {
    expect(mergedTokenWeightsReference(ids, weights, unweightedIds)).toEqual(expected);
    const found = mergeTokenWeights(Int32Array.from(ids), Float32Array.from(weights), new Set(unweightedIds));
    expect({ indices: [...found.indices], values: [...found.values] }).toEqual(expected);
  });
});

interface TopCase {
  readonly vectors: number[][];
  readonly terms: number;
  readonly expected: { readonly weights: number[][]; readonly ids: number[][] };
}

describe('kernel top-terms', () => {
  const { cases } = read('top-terms') as CaseFile<TopCase>;

  it.each(cases)('the reference gives the terms worked out by hand: $name', ({ vectors, terms, expected }) => {
    const found = vectors.map((vector) => topTermsReference(vector, terms));
    expect({ weights: found.map((one) => one.weights), ids: found.map((one) => one.ids) }).toEqual(expected);
  });

  itInEveryOpset('the graph gives the same weights, and ids that hold them,', async (opset, engine) => {
    for (const { vectors, terms, expected } of cases) {
      const build = (builder: GraphBuilder, tensor: string) => {
        const top = topTerms(builder, tensor, terms);
        return [top.weights, top.ids];
      };
      const [weights, ids] = await runKernel(opset, vectors, 2, build, engine);
      expect(weights?.values).toEqual(flatten(expected.weights));
      // Which of equal weights comes first is open; that each id holds its weight is not.
      expect(ids?.values.map((id) => vectors[0]?.[id])).toEqual(weights?.values);
    }
  });
});

interface LabelCase {
  readonly vectors: number[][];
  readonly positive: number;
  readonly negative: number;
  readonly expected: number[][];
}

describe('kernel label-logit', () => {
  const { cases } = read('label-logit') as CaseFile<LabelCase>;

  it.each(cases)('the reference gives the number worked out by hand: $name', (one) => {
    const { vectors, positive, negative, expected } = one;
    expect(vectors.map((logits) => labelLogitReference(logits, positive, negative))).toEqual(expected);
  });

  itInEveryOpset('the graph gives the same number', async (opset, engine) => {
    for (const { vectors, positive, negative, expected } of cases) {
      const build = (builder: GraphBuilder, tensor: string) => [labelLogit(builder, tensor, positive, negative)];
      const [found] = await runKernel(opset, vectors, 2, build, engine);
      expect(found).toEqual({ values: flatten(expected), dims: [vectors.length, 1] });
    }
  });
});
