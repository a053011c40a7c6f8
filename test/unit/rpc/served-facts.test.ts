import { describe, expect, it } from 'vitest';
import { createServedFacts } from '../../../src/rpc/served-facts.ts';
import type { ServedTasks } from '../../../src/task/context.ts';
import { createServed } from '../task/fakes.ts';
import { allTasks, limits } from './harness.ts';

const rest = {
  limits: { ...limits, maxBatchTokens: 1, maxBatchItems: 1, maxQueuedItems: 1 },
  server: { name: 'trivec', version: '0' },
  modelNames: 'any',
} as const;
const emptyTasks: ServedTasks = { embed: [], sparseEmbed: [], multiVector: [], rerankers: [] };
const textsOf = (...texts: string[]) => ({ texts, hasSpecialTokens: false, field: 'inputs' });
const signal = new AbortController().signal;

describe('what is served', () => {
  it('lists each model once, with every method that it serves, in the order of the settings', () => {
    const { models } = createServedFacts(allTasks(), rest);
    expect(models.map(({ model, methods }) => [model, ...methods])).toEqual([
      ['dense', 'embed'],
      ['dense-2', 'embed'],
      ['sparse', 'embed/sparse'],
      ['tokens', 'embed/multi', 'rerank'],
      ['pairs', 'rerank'],
    ]);
    expect(models[0]).toMatchObject({ identity: 'dense@r', precision: 'fp32', maxInputTokens: 16, dimension: 4 });
  });

  it('tells its limits and nothing else of the settings', () => {
    const settings = { ...rest.limits, apiKey: ['sesame'] };
    const { limits: told } = createServedFacts(allTasks(), { ...rest, limits: settings });
    expect(Object.keys(told).sort()).toEqual([
      'batchLimit',
      'deadlineMs',
      'maxBatchItems',
      'maxBatchTokens',
      'maxCandidates',
      'maxQueuedItems',
    ]);
  });

  it('gives no length of vectors for a model that makes none', () => {
    const tasks = { ...emptyTasks, embed: [createServed({ dimension: 0 })] };
    expect(createServedFacts(tasks, rest).models.map(({ dimension }) => dimension)).toEqual([null]);
  });

  it('reads texts and ids as the first model does', async () => {
    const { tokenize, decode } = createServedFacts(allTasks(), rest);
    const ids = await tokenize(textsOf('ab'), signal, async ([tokens = []]) => tokens.map(({ id }) => id));
    expect(await decode([ids], false, signal)).toEqual(['ab']);
  });

  it('reads texts and ids as the model of a name does, whatever it serves', async () => {
    const isOfOther = { ...createServed({ modelId: 'other' }).tokenizer, decode: async () => ['other'] };
    const other = { ...createServed({ modelId: 'other' }), tokenizer: isOfOther };
    const { tokenize, decode } = createServedFacts({ ...allTasks(), sparseEmbed: [other] }, rest);
    expect(await decode([[1]], false, signal, 'other')).toEqual(['other']);
    expect(await decode([[97]], false, signal, 'tokens')).not.toEqual(['other']);
    const unknown = { errorName: 'unsupportedOption', data: { field: 'x-trivec.model', option: 'none' } };
    await expect(decode([[1]], false, signal, 'none')).rejects.toMatchObject(unknown);
    const asked = { ...textsOf('a'), model: 'none' };
    await expect(tokenize(asked, signal, async () => null)).rejects.toMatchObject(unknown);
  });

  it('has no tokens without a model', async () => {
    const { models, tokenize } = createServedFacts(emptyTasks, rest);
    expect(models).toEqual([]);
    await expect(tokenize(textsOf('a'), signal, async () => null)).rejects.toMatchObject({
      errorName: 'capabilityNotAdvertised',
    });
  });
});
