import { Tensor } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { graphProblem } from '../../../src/executor/graph-check.ts';
import { readOutput, textValues, tokenRows } from '../../../src/executor/outputs.ts';
import type { AddedHead, RunPolicy } from '../../../src/executor/protocol.ts';

describe('an output', () => {
  it('of float16 becomes float32 by its bits', () => {
    const tensor = new Tensor('float16', Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7c00), [2, 2]);
    const output = readOutput('x', tensor);
    expect(output).toEqual({ values: Float32Array.of(1, -2, 2 ** -24, Infinity), dims: [2, 2] });
  });

  it('of another type, or none at all, is refused', () => {
    expect(() => readOutput('x', new Tensor('int32', Int32Array.of(1), [1]))).toThrow('x is not float32');
    expect(() => readOutput('x', undefined)).toThrow('no output x');
  });

  it('is split by text, copies left behind', () => {
    const output = { values: Float32Array.of(1, 2, 3, 4, 5, 6), dims: [3, 2] };
    expect(textValues(output, 1, 3)).toEqual(Float32Array.of(3, 4));
    expect(() => textValues(output, 0, 2)).toThrow('[3, 2] for 2 texts');
  });

  it('of rows loses those of padding', () => {
    const output = { values: Float32Array.from({ length: 12 }, (_, index) => index), dims: [2, 3, 2] };
    const size = { texts: 2, tokens: 3 };
    expect(tokenRows(output, 1, size, 2)).toEqual({ values: Float32Array.of(6, 7, 8, 9), dimension: 2 });
    expect(() => tokenRows(output, 1, { texts: 2, tokens: 4 }, 2)).toThrow('rows of 4 tokens');
    const weights = { values: Float32Array.of(1, 2, 3, 4, 5, 6), dims: [2, 3] };
    expect(tokenRows(weights, 0, size, 2)).toEqual({ values: Float32Array.of(1, 2), dimension: 1 });
  });
});

/** What a model asks of its graph. */
interface GraphNeeds {
  readonly heads?: readonly AddedHead[];
  readonly kind?: RunPolicy['kind'];
  readonly topTerms?: number | null;
  readonly hiddenOutput?: string;
}

describe('a loaded graph', () => {
  const value = (name: string, type: Tensor.Type) => ({ name, isTensor: true as const, type, shape: [] });
  const problemOf = (
    inputs: readonly string[],
    outputs: readonly [string, Tensor.Type][],
    { heads = ['dense'], kind = 'alone', topTerms = null, ...hidden }: GraphNeeds = {},
  ) =>
    graphProblem(
      {
        heads,
        ...hidden,
        runPolicy: { kind, fixedBatch: null, fixedTokens: null },
        sparse: { form: 'terms', unweightedIds: [], topTerms },
      },
      {
        inputNames: inputs,
        inputMetadata: inputs.map((name) => value(name, 'int64')),
        outputMetadata: outputs.map(([name, type]) => value(name, type)),
      },
    );
  const vector = [['trivec_dense', 'float32']] as [string, Tensor.Type][];

  it('serves where it has what the heads need, in float32 or float16', () => {
    expect(problemOf(['input_ids', 'position_ids', 'trivec_pooling_mask'], vector)).toBeNull();
    expect(problemOf(['input_ids'], [['trivec_dense', 'float16']])).toBeNull();
  });

  it.each([
    ['an input that nobody feeds', problemOf(['input_ids', 'pixel_values'], vector), 'pixel_values'],
    ['no ids', problemOf(['attention_mask'], vector), 'input_ids'],
    ['no mask to hide padding', problemOf(['input_ids'], vector, { kind: 'padded' }), 'attention_mask'],
    ['no output for a head', problemOf(['input_ids'], vector, { heads: ['dense', 'logit'] }), 'trivec_logit'],
    ['an output of integers', problemOf(['input_ids'], [['trivec_dense', 'int64']]), 'neither float32 nor float16'],
    ['no rows of the encoder', problemOf(['input_ids'], vector, { hiddenOutput: 'rows' }), 'no output rows'],
    [
      'no output of the heaviest terms',
      problemOf(['input_ids'], [['trivec_sparse', 'float32']], { heads: ['sparse'], topTerms: 4 }),
      'trivec_sparse_top_weights',
    ],
  ])('is refused for %s', (_name, problem, reason) => {
    expect(problem).toContain(reason);
  });
});
