import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import type { RunRow } from '../../../src/executor/protocol.ts';
import type { ModelManifest, SelfCheck } from '../../../src/model/manifest.ts';
import { proofRunsOf } from '../../../src/proof.ts';
import type { TextTokenizer } from '../../../src/tokenize/tokenizer.ts';
import { plainFacts } from '../../support/model-facts.ts';

const text = { ids: Int32Array.of(1, 2), typeIds: null, isTruncated: false, totalTokens: 2, isTotalMinimum: false };
const tokenizer: TextTokenizer = {
  implementation: 'test',
  ordinaryIdEnd: 0,
  idEnd: 8,
  specialTokens: 0,
  tokenize: (texts) => Promise.resolve(texts.map(() => text)),
  tokenizePairs: (_, passages) => Promise.resolve(passages.map(() => text)),
  detailsOf: () => Promise.resolve([]),
  decode: () => Promise.resolve([]),
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
  ...plainFacts(2),
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
    const [first, , maxSim] = proofs;
    expect(proofs.map(({ batch }) => batch.head)).toEqual(['dense', 'rows', 'maxSim', 'dense']);
    expect(first?.batch.items[0]?.ids).toEqual(Int32Array.of(1, 2));
    expect(maxSim?.batch.queryRows?.values).toEqual(Float32Array.of(1, 0));
  });
});

describe('the limits of a model', () => {
  const rows = (tokenTableRows: number): ModelManifest => ({ ...model(['dense'], []), tokenTableRows });

  it('ordinary tokens that the graph has no row for are refused at the start', async () => {
    await expect(proofRunsOf(rows(7), { ...tokenizer, ordinaryIdEnd: 8 })).rejects.toThrow(ConfigurationError);
    await expect(proofRunsOf(model(['dense'], []), { ...tokenizer, ordinaryIdEnd: 9 })).rejects.toThrow('8 tokens');
    expect(await proofRunsOf(rows(8), { ...tokenizer, ordinaryIdEnd: 8 })).not.toEqual([]);
  });

  it('a text of the full length is run, unless that takes seconds', async () => {
    const asked: string[][] = [];
    const watching: TextTokenizer = {
      ...tokenizer,
      tokenize(texts) {
        asked.push(texts.map(String));
        return tokenizer.tokenize(texts);
      },
    };
    const words = async (maxTokens: number) => {
      asked.length = 0;
      const runs = await proofRunsOf({ ...model(['dense', 'rows'], []), maxTokens }, watching);
      const longest = Math.max(...asked.flat().map((one) => one.split(' ').length));
      return { runs: runs.length, isFull: longest > maxTokens };
    };
    expect(await words(512)).toEqual({ runs: 3, isFull: true });
    expect(await words(2_048)).toEqual({ runs: 3, isFull: true });
    expect(await words(2_049)).toEqual({ runs: 2, isFull: false });
  });

  it('values that are not numbers for such a text are told with its length', async () => {
    const runs = await proofRunsOf(model(['dense'], []), tokenizer);
    expect(runs.at(-1)?.judge([row([1, 0])])).toBeNull();
    expect(runs.at(-1)?.judge([row([Number.NaN, 0])])).toContain('a text of 2 tokens');
  });
});

describe('a model whose texts may share a run', () => {
  const sharing = (heads: ModelManifest['heads'], precision: ModelManifest['precision'] = 'fp32'): ModelManifest => ({
    ...model(heads, []),
    precision,
    runPolicy: { kind: 'padded', fixedBatch: null, fixedTokens: null },
  });
  const words: TextTokenizer = {
    ...tokenizer,
    tokenize: (texts) =>
      Promise.resolve(
        texts.map((one) => ({ ...text, ids: Int32Array.from([1, ...String(one).split(' ').keys(), 2]) })),
      ),
  };
  const companyOf = async (manifest: ModelManifest) => {
    const [alone, together] = (await proofRunsOf(manifest, words)).slice(-2);
    if (alone === undefined || together === undefined) throw new Error('no proof run');
    return { alone, together };
  };
  const other = row([9, 9]);
  const judgeBoth = async (manifest: ModelManifest, first: RunRow, second: RunRow) => {
    const { alone, together } = await companyOf(manifest);
    expect(alone.judge([first])).toBeNull();
    return together.judge([other, second, other]);
  };

  it('runs a text alone, and the same text beside one of its length and a longer one', async () => {
    const { alone, together } = await companyOf(sharing(['dense']));
    const [longer, same, equallyLong] = together.batch.items;
    expect(alone.batch.items).toEqual([same]);
    expect(equallyLong?.ids.length).toBe(same?.ids.length);
    expect(equallyLong?.ids).not.toEqual(same?.ids);
    expect(longer?.ids.length).toBeGreaterThan(same?.ids.length ?? Infinity);
  });

  it.each([
    ['dense', 'fp32', row([0.6, 0.8]), row([0.600001, 0.8]), row([0.61, 0.8])],
    ['dense', 'fp16', row([0.6, 0.8]), row([0.61, 0.8]), row([0.7, 0.8])],
    ['dense', 'int8', row([0.6, 0.8]), row([0.6, 0.8]), row([0.6000001, 0.8])],
    ['sparse', 'fp32', row([1, 2], [3, 5]), row([1, 2.000001], [3, 5]), row([1, 2], [3, 6])],
    ['sparse', 'fp32', row([], []), row([], []), row([1], [3])],
    ['logit', 'fp32', row([4]), row([4.001]), row([4.1])],
    ['logit', 'fp16', row([4]), row([4.1]), row([4.5])],
    ['rows', 'fp32', row([0.6, 0.8]), row([0.6, 0.8]), row([Number.NaN, 0.8])],
  ] as const)('%s in %s is let through near its own values only', async (head, precision, alone, near, far) => {
    const manifest = sharing([head], precision);
    expect(await judgeBoth(manifest, alone, near)).toBeNull();
    expect(await judgeBoth(manifest, alone, far)).toContain(`tiny (${head}, ${precision})`);
  });

  it('is refused where an executor was never asked for the text alone', async () => {
    const { together } = await companyOf(sharing(['dense']));
    expect(together.judge([other, other, other])).toContain('tiny');
  });

  it('has no such proof where every text runs alone', async () => {
    expect(await proofRunsOf(model(['dense'], []), words)).toHaveLength(2);
  });
});
