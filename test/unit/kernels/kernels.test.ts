/** Owns the check of every kernel, as a graph and as reference, on the shared cases. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { clsPool } from '../../../src/kernels/cls-pool/graph.ts';
import { clsPoolReference } from '../../../src/kernels/cls-pool/reference.ts';
import { lastTokenPool } from '../../../src/kernels/last-token-pool/graph.ts';
import { lastTokenPoolReference } from '../../../src/kernels/last-token-pool/reference.ts';
import { lateInteraction } from '../../../src/kernels/late-interaction/graph.ts';
import { lateInteractionReference } from '../../../src/kernels/late-interaction/reference.ts';
import { maxPool } from '../../../src/kernels/max-pool/graph.ts';
import { maxPoolReference } from '../../../src/kernels/max-pool/reference.ts';
import { maxSimModel } from '../../../src/kernels/max-sim/graph.ts';
import { maxSimReference } from '../../../src/kernels/max-sim/reference.ts';
import { meanPool } from '../../../src/kernels/mean-pool/graph.ts';
import { meanPoolReference } from '../../../src/kernels/mean-pool/reference.ts';
import { normalize } from '../../../src/kernels/normalize/graph.ts';
import { normalizeReference } from '../../../src/kernels/normalize/reference.ts';
import { createGraphBuilder, elementTypes } from '../../../src/kernels/onnx/builder.ts';
import type { GraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import { ModelProtoSchema } from '../../../src/kernels/onnx/onnx_pb.ts';
import { splade } from '../../../src/kernels/splade/graph.ts';
import type { SpladeVariant } from '../../../src/kernels/splade/graph.ts';
import { spladeReference } from '../../../src/kernels/splade/reference.ts';
import { sqrtLenPool } from '../../../src/kernels/sqrt-len-pool/graph.ts';
import { sqrtLenPoolReference } from '../../../src/kernels/sqrt-len-pool/reference.ts';
import { weightedMeanPool } from '../../../src/kernels/weighted-mean-pool/graph.ts';
import { weightedMeanPoolReference } from '../../../src/kernels/weighted-mean-pool/reference.ts';
import { toBinary } from '@bufbuild/protobuf';
import { itInEveryOpset, toleranceOn } from './engines.ts';
import { dimsOf, encodeModel, flatten, floatTensor, intTensor, maxDifference, runModel } from './run-onnx.ts';
import type { Engine, Nested } from './run-onnx.ts';

interface Case {
  readonly name: string;
  readonly hidden?: number[][][];
  readonly mask?: number[][];
  readonly variant?: SpladeVariant;
  readonly vectors?: number[][];
  readonly queryRows?: number[][];
  readonly passageRows?: number[][];
  readonly expected: Nested;
}

interface CaseFile {
  readonly tolerance: number;
  readonly cases: readonly Case[];
}

const readCases = (kernel: string): CaseFile =>
  JSON.parse(readFileSync(new URL(`../../../src/kernels/${kernel}/cases.json`, import.meta.url), 'utf8')) as CaseFile;

interface TokenKernel {
  readonly shape: readonly string[];
  readonly graph: (builder: GraphBuilder, hidden: string, mask: string | null, variant?: SpladeVariant) => string;
  readonly reference: (rows: number[][], mask: number[] | null, variant?: SpladeVariant) => Nested;
}

const tokenKernels: Readonly<Record<string, TokenKernel>> = {
  'mean-pool': { shape: ['batch', 'width'], graph: meanPool, reference: meanPoolReference },
  'cls-pool': { shape: ['batch', 'width'], graph: clsPool, reference: clsPoolReference },
  'max-pool': { shape: ['batch', 'width'], graph: maxPool, reference: maxPoolReference },
  'last-token-pool': { shape: ['batch', 'width'], graph: lastTokenPool, reference: lastTokenPoolReference },
  'sqrt-len-pool': { shape: ['batch', 'width'], graph: sqrtLenPool, reference: sqrtLenPoolReference },
  'weighted-mean-pool': { shape: ['batch', 'width'], graph: weightedMeanPool, reference: weightedMeanPoolReference },
  splade: { shape: ['batch', 'width'], graph: splade, reference: spladeReference },
  'late-interaction': {
    shape: ['batch', 'sequence', 'width'],
    graph: lateInteraction,
    reference: lateInteractionReference,
  },
};

async function runTokenKernel(
  kernel: TokenKernel,
  opset: number,
  hidden: number[][][],
  mask: number[][] | undefined,
  variant: SpladeVariant | undefined,
  engine: Engine,
) {
  const builder = createGraphBuilder(opset);
  const input = builder.input('hidden', elementTypes.float32, ['batch', 'sequence', 'width']);
  const maskInput = mask ? builder.input('attention_mask', elementTypes.int64, ['batch', 'sequence']) : null;
  builder.output('result', kernel.graph(builder, input, maskInput, variant), kernel.shape);
  const model = encodeModel(builder);
  const feeds = { hidden: floatTensor(hidden), ...(mask ? { attention_mask: intTensor(mask) } : {}) };
  return (await runModel(model, feeds, ['result'], engine))['result'];
}

describe.each(Object.entries(tokenKernels))('kernel %s', (name, kernel) => {
  const { cases, tolerance } = readCases(name);

  it.each(cases)(
    'the reference gives the numbers worked out by hand: $name',
    ({ hidden = [], mask, variant, expected }) => {
      const found = hidden.map((rows, index) => kernel.reference(rows, mask?.[index] ?? null, variant));
      expect(maxDifference(flatten(found), flatten(expected))).toBeLessThanOrEqual(Math.max(tolerance, 1e-9));
    },
  );

  itInEveryOpset('the graph equals the reference', async (opset, engine) => {
    for (const { hidden = [], mask, variant } of cases) {
      const expected = hidden.map((rows, index) => kernel.reference(rows, mask?.[index] ?? null, variant));
      const found = await runTokenKernel(kernel, opset, hidden, mask, variant, engine);
      expect(found?.dims).toEqual(dimsOf(expected));
      expect(maxDifference(found?.values ?? [], flatten(expected))).toBeLessThanOrEqual(toleranceOn(engine, tolerance));
    }
  });

  itInEveryOpset('without a mask input every row counts,', async (opset, engine) => {
    for (const { hidden = [], variant } of cases) {
      const expected = hidden.map((rows) => kernel.reference(rows, null, variant));
      const found = await runTokenKernel(kernel, opset, hidden, undefined, variant, engine);
      expect(found?.dims).toEqual(dimsOf(expected));
      expect(maxDifference(found?.values ?? [], flatten(expected))).toBeLessThanOrEqual(
        toleranceOn(engine, Math.max(tolerance, 1e-5)),
      );
    }
  });
});

describe('kernel normalize', () => {
  const { cases, tolerance } = readCases('normalize');

  it.each(cases)('the reference gives the numbers worked out by hand: $name', ({ vectors = [], expected }) => {
    const found = vectors.map((vector) => normalizeReference(vector));
    expect(maxDifference(flatten(found), flatten(expected))).toBeLessThanOrEqual(tolerance);
  });

  itInEveryOpset('the graph equals the reference', async (opset, engine) => {
    for (const { vectors = [] } of cases) {
      const builder = createGraphBuilder(opset);
      const input = builder.input('vectors', elementTypes.float32, ['batch', 'width']);
      builder.output('result', normalize(builder, input), ['batch', 'width']);
      const found = (await runModel(encodeModel(builder), { vectors: floatTensor(vectors) }, ['result'], engine))[
        'result'
      ];
      const expected = flatten(vectors.map((vector) => normalizeReference(vector)));
      expect(maxDifference(found?.values ?? [], expected)).toBeLessThanOrEqual(toleranceOn(engine, tolerance));
    }
  });
});

describe('kernel max-sim', () => {
  const { cases, tolerance } = readCases('max-sim');

  it.each(cases)('the reference gives the number worked out by hand: $name', (one) => {
    const found = maxSimReference(one.queryRows ?? [], one.passageRows ?? []);
    expect(maxDifference([found], flatten(one.expected))).toBeLessThanOrEqual(tolerance);
  });

  itInEveryOpset('the stand-alone model equals the reference', async (opset, engine) => {
    const model = toBinary(ModelProtoSchema, maxSimModel('trivec_max_sim', opset));
    for (const { queryRows = [], passageRows = [] } of cases) {
      const feeds = { query_rows: floatTensor(queryRows), passage_rows: floatTensor(passageRows) };
      const found = (await runModel(model, feeds, ['trivec_max_sim'], engine))['trivec_max_sim'];
      expect(found?.dims).toEqual([1]);
      const expected = [maxSimReference(queryRows, passageRows)];
      expect(maxDifference(found?.values ?? [], expected)).toBeLessThanOrEqual(toleranceOn(engine, tolerance));
    }
  });
});
