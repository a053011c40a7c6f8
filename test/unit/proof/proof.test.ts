import { describe, expect, it } from 'vitest';
import type { RunRow } from '../../../src/executor/protocol.ts';
import type { ModelManifest, SelfCheck } from '../../../src/model/manifest.ts';
import { proofRunsOf } from '../../../src/proof.ts';
import type { TextTokenizer } from '../../../src/tokenize/tokenizer.ts';

const text = { ids: Int32Array.of(1, 2), typeIds: null, isTruncated: false, totalTokens: 2, isTotalMinimum: false };
const tokenizer: TextTokenizer = {
  implementation: 'test',
  tokenize: (texts) => Promise.resolve(texts.map(() => text)),
  tokenizePairs: (_, passages) => Promise.resolve(passages.map(() => text)),
  idsOf: () => new Set(),
};
const minCosine = { int8: 0.98, fp16: 0.9995, fp32: 0.99999 };
const stored = (head: SelfCheck['head'], values: number[], indices: number[] | null = null): SelfCheck => ({
  head,
  ids: [1, 2],
  expected: { values, indices },
  minCosine,
});
const model = (heads: ModelManifest['heads'], selfChecks: SelfCheck[]): ModelManifest => ({
  modelId: 'tiny',
  folder: '/models/tiny',
  graphPath: '/models/tiny/onnx/model.onnx',
  precision: 'int8',
  revision: '0',
  sha256: '0',
  maxTokens: 8,
  hiddenSize: 2,
  vocabularySize: 8,
  pooling: 'mean',
  isNormalized: true,
  isMatryoshka: false,
  prompts: { query: '', document: '', unspecified: '' },
  tokenRows: { documentSkipTokens: [] },
  scoreActivation: 'sigmoid',
  heads,
  selfChecks,
});
const row = (values: number[], indices: number[] | null = null): RunRow => ({
  values: Float32Array.from(values),
  indices: indices === null ? null : Int32Array.from(indices),
});
const proofOf = async (manifest: ModelManifest) => {
  const [proof] = await proofRunsOf(manifest, tokenizer);
  if (proof === undefined) throw new Error('no proof run');
  return proof;
};

describe('a stored answer', () => {
  it('is met by a vector of the same direction', async () => {
    const proof = await proofOf(model(['dense'], [stored('dense', [0.6, 0.8])]));
    expect(proof.judge([row([0.6, 0.8])])).toBeNull();
  });

  it('that a device misses is told with model, head, precision and cosine', async () => {
    const proof = await proofOf(model(['dense'], [stored('dense', [0.6, 0.8])]));
    const reason = proof.judge([row([0.8, -0.6])]);
    for (const part of ['tiny', 'dense', 'int8', '0.00000', '0.98']) expect(reason).toContain(part);
  });

  it.each([
    ['a value that is not a number', [row([Number.NaN, 0.8])]],
    ['another width', [row([0.6, 0.8, 0])]],
    ['no row', []],
  ])('is missed by %s', async (_, rows) => {
    const proof = await proofOf(model(['dense'], [stored('dense', [0.6, 0.8])]));
    expect(proof.judge(rows)).not.toBeNull();
  });

  it('of terms is compared by term, not by place', async () => {
    const proof = await proofOf(model(['sparse'], [stored('sparse', [1, 2], [3, 5])]));
    expect(proof.judge([row([1, 2], [3, 5])])).toBeNull();
    expect(proof.judge([row([1, 2], [4, 6])])).not.toBeNull();
    expect(proof.judge([row([1, 2])])).not.toBeNull();
  });
});

describe('a head without a stored answer', () => {
  it('runs all the same, and must give numbers', async () => {
    const proof = await proofOf(model(['rows'], []));
    expect(proof.judge([row([1, 0]), row([0, 1])])).toBeNull();
    expect(proof.judge([row([1, 0]), row([Number.POSITIVE_INFINITY, 1])])).not.toBeNull();
  });

  it('of a cross-encoder must tell passages apart', async () => {
    const proof = await proofOf(model(['logit'], []));
    expect(proof.judge([row([1]), row([2])])).toBeNull();
    expect(proof.judge([row([1]), row([1])])).toContain('same score');
  });

  it('is proved beside the ones that have one', async () => {
    const proofs = await proofRunsOf(model(['dense', 'rows', 'maxSim'], [stored('dense', [1, 0])]), tokenizer);
    expect(proofs.map(({ batch }) => batch.head)).toEqual(['dense', 'rows', 'maxSim']);
    expect(proofs.at(-1)?.batch.queryRows?.values).toEqual(Float32Array.of(1, 0));
  });
});
