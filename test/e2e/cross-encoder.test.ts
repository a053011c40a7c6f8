import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServed, type Served } from '../support/served.ts';
import { tinyId, tinyWeightsOf, writeTinyModel } from '../support/tiny-models.ts';
import { tinyLogits } from '../support/tiny-reference.ts';
import { tinySizes } from '../support/tiny-weights.ts';

const tolerance = 1e-5;
const query = 'what swim in the river';
const passages = 'river lake fish bird tree apple stone night horse snow'.split(' ').map((word) => `the ${word}`);

interface Ranked {
  readonly scores: readonly number[];
  readonly order: readonly number[];
  readonly results: readonly { readonly index: number; readonly score: number }[];
  readonly usage: { readonly inputTokens: number; readonly truncated: readonly number[] };
}

const idsOf = (text: string) =>
  text
    .split(' ')
    .filter((word) => word !== '')
    .map(tinyId);

/** Ids and segments as the reference tokenizer gives them for a pair: the passage is cut, never the query. */
function pairOf(passage: string, asked = query) {
  const first = [tinyId('[CLS]'), ...idsOf(asked), tinyId('[SEP]')];
  const second = [...idsOf(passage).slice(0, tinySizes.positions - first.length - 1), tinyId('[SEP]')];
  return { ids: [...first, ...second], typeIds: [...first.map(() => 0), ...second.map(() => 1)] };
}

/** The logit by hand. */
function logitOf(passage: string, kind: 'crossEncoder' | 'crossEncoderWithSigmoid' = 'crossEncoder', asked = query) {
  const { ids, typeIds } = pairOf(passage, asked);
  return tinyLogits(tinyWeightsOf(kind), ids, typeIds)[0] ?? Number.NaN;
}

const sigmoid = (logit: number) => 1 / (1 + Math.exp(-logit));

function expectNear(found: readonly number[], expected: readonly number[]): void {
  expect(found).toHaveLength(expected.length);
  for (const [index, value] of expected.entries()) {
    expect(Math.abs((found[index] ?? NaN) - value), `passage ${String(index)}`).toBeLessThan(tolerance);
  }
}

describe('a served cross-encoder', () => {
  let folder: string;
  let served: Served;
  const rank = (more: object = {}) => served.call<Ranked>('rerank', { query, passages, ...more });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tiny-cross-encoder-'));
    await writeTinyModel('crossEncoder', join(folder, 'tiny-judge'));
    served = await startServed({
      flags: ['--rerank-model', join(folder, 'tiny-judge'), '--sparse-model', 'none'],
      environment: { TRIVEC_CACHE_DIR: join(folder, 'cache') },
    });
  });
  afterAll(async () => {
    await served.end();
    await rm(folder, { recursive: true });
  });

  it('is the first method, before colbert, and its limit is the one that info gives', async () => {
    const info = await served.call<Record<string, Record<string, Record<string, unknown>>>>('info');
    expect(info['capabilities']?.['rerank']).toMatchObject({
      methods: ['cross-encoder', 'colbert'],
      models: ['tiny-judge', 'all-MiniLM-L6-v2'],
    });
    expect(info['x-trivec']?.['maxInputTokens']).toMatchObject({ rerank: tinySizes.positions, embed: 256 });
    expect(info['capabilities']).not.toHaveProperty('sparseEmbed');
  });

  it('scores are the sigmoid of the logit, once, and the order is that of the logits', async () => {
    const logits = passages.map((passage) => logitOf(passage));
    const { scores, order, results } = await rank();
    expectNear(scores, logits.map(sigmoid));
    expect(new Set(scores).size).toBe(passages.length);
    expect(order).toEqual(passages.map((_, index) => index).sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0)));
    expect(results).toEqual(order.map((index) => ({ index, score: scores[index] })));
  });

  it('the segments of the pair are there: without them the scores would differ', () => {
    const weights = tinyWeightsOf('crossEncoder');
    for (const passage of passages) {
      const flat = tinyLogits(weights, pairOf(passage).ids)[0] ?? NaN;
      expect(Math.abs(sigmoid(flat) - sigmoid(logitOf(passage)))).toBeGreaterThan(10 * tolerance);
    }
  });

  it('a score is the same alone and in a list beside a long passage', async () => {
    const { scores } = await rank({ passages: [...passages, 'stone '.repeat(500)] });
    for (const [index, passage] of passages.entries()) {
      expectNear((await rank({ passages: [passage] })).scores, [scores[index] ?? NaN]);
    }
  });

  it('of a long pair the passage is cut, the query is kept, and the cut is reported', async () => {
    const long = 'the old fish swim in the lake and the bird sleep '.repeat(500).trim();
    const { scores, usage } = await rank({ passages: ['the river', long] });
    expectNear(scores, [logitOf('the river'), logitOf(long)].map(sigmoid));
    expect(usage.truncated).toEqual([1]);
    expect(usage.inputTokens).toBe(pairOf('the river').ids.length + tinySizes.positions);
    const byHand = long
      .split(' ')
      .slice(0, tinySizes.positions - 3 - idsOf(query).length)
      .join(' ');
    expectNear((await rank({ passages: [byHand] })).scores, [scores[1] ?? NaN]);
  });

  it('with truncate: false a long passage is refused with its place, tokens and limit', async () => {
    const params = { query, passages: ['sun', 'moon '.repeat(100)], 'x-trivec': { truncate: false } };
    const { code, data } = await served.refusal('rerank', params);
    expect(code).toBe(-32602);
    expect(data).toMatchObject({ field: 'passages[1]', limit: tinySizes.positions, tokens: 100 + 5 + 3 });
  });

  it('a query that leaves no room for a passage is refused with its field', async () => {
    const refused = await served.refusal('rerank', { query: 'river '.repeat(600), passages: ['a'] });
    expect([refused.code, refused.data['field']]).toEqual([-32602, 'query']);
    const barely = await served.refusal('rerank', { query: 'river '.repeat(tinySizes.positions - 3), passages: ['a'] });
    expect([barely.code, barely.data['field']]).toEqual([-32602, 'query']);
    const room = 'river '.repeat(tinySizes.positions - 4).trim();
    const { scores } = await served.call<Ranked>('rerank', { query: room, passages: ['sea lake'] });
    expectNear(scores, [sigmoid(logitOf('sea lake', 'crossEncoder', room))]);
  });

  it('a passage with a literal separator keeps its segment', async () => {
    const { scores } = await rank({ passages: ['the river [SEP] the lake'] });
    expectNear(scores, [sigmoid(logitOf('the river [SEP] the lake'))]);
  });

  it('blank passages are scored in their place', async () => {
    const { scores } = await rank({ passages: ['', 'the river', '   '] });
    expectNear(
      scores,
      ['', 'the river', ''].map((passage) => sigmoid(logitOf(passage))),
    );
  });

  it('method colbert still ranks by rows, and both methods can be named', async () => {
    const colbert = await rank({ method: 'colbert' });
    // A MaxSim sum over more than five query rows of nearby words is far above any probability.
    expect(Math.min(...colbert.scores)).toBeGreaterThan(1);
    expect((await rank({ method: 'cross-encoder' })).scores).toEqual((await rank()).scores);
  });

  it('the name of a model selects it, an unknown one or one of another method is refused', async () => {
    expect((await rank({ model: 'tiny-judge' })).scores).toEqual((await rank()).scores);
    expect((await rank({ model: 'all-MiniLM-L6-v2' })).scores).toEqual((await rank({ method: 'colbert' })).scores);
    const unknown = await served.refusal('rerank', { query, passages, model: 'nope' });
    expect([unknown.code, unknown.data['field'], unknown.data['option']]).toEqual([-32005, 'model', 'nope']);
    const crossed = await served.refusal('rerank', { query, passages, model: 'tiny-judge', method: 'colbert' });
    expect([crossed.code, crossed.data['field']]).toEqual([-32005, 'model']);
  });

  it('dense vectors of the default model are served beside it', async () => {
    const { dimension } = await served.call<{ dimension: number }>('embed', { inputs: ['a'] });
    expect(dimension).toBe(384);
  });
});

describe('a cross-encoder whose graph ends with a Sigmoid', () => {
  it('alone serves rerank with the sigmoid applied once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tiny-cross-encoder-'));
    await writeTinyModel('crossEncoderWithSigmoid', join(folder, 'tiny-sure'));
    const none = ['--embed-model', 'none', '--sparse-model', 'none', '--multi-model', 'none'];
    const served = await startServed({
      flags: ['--rerank-model', join(folder, 'tiny-sure'), ...none],
      environment: { TRIVEC_CACHE_DIR: join(folder, 'cache') },
    });
    try {
      const { scores } = await served.call<Ranked>('rerank', { query, passages });
      expectNear(
        scores,
        passages.map((passage) => sigmoid(logitOf(passage, 'crossEncoderWithSigmoid'))),
      );
      const { capabilities } = await served.call<{ capabilities: Record<string, unknown> }>('info');
      expect(capabilities).toMatchObject({ rerank: { methods: ['cross-encoder'], models: ['tiny-sure'] } });
      expect(Object.keys(capabilities)).not.toContain('embed');
      expect((await served.refusal('embed', { inputs: ['a'] })).code).toBe(-32003);
      expect((await served.refusal('rerank', { query, passages, method: 'colbert' })).code).toBe(-32005);
    } finally {
      await served.end();
      await rm(folder, { recursive: true });
    }
  });
});

describe('a model that is no cross-encoder', () => {
  it.each([
    ['fiveLabels', /label/u],
    ['dense', /tiny-wrong/u],
  ] as const)('%s as the reranker ends the start with a message', async (kind, message) => {
    const folder = await mkdtemp(join(tmpdir(), 'tiny-cross-encoder-'));
    try {
      await writeTinyModel(kind, join(folder, 'tiny-wrong'));
      const start = startServed({
        flags: ['--rerank-model', join(folder, 'tiny-wrong')],
        environment: { TRIVEC_CACHE_DIR: join(folder, 'cache') },
      });
      await expect(start).rejects.toThrow(/exit code 2/u);
      await expect(start).rejects.toThrow(message);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
