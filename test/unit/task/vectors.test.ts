import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { emptyUsage } from '../../../src/task/context.ts';
import { checkDimensions, embed } from '../../../src/task/embed.ts';
import { multiVector } from '../../../src/task/multi-vector.ts';
import { sparseEmbed } from '../../../src/task/sparse-embed.ts';
import { contextOf, createFakeScheduler, createServed, rejectionOf } from './fakes.ts';
import { plainTokenRows } from '../../../src/model/token-row-rules.ts';

const inputs = (texts: readonly string[], kind: 'query' | 'document' | null = null) => ({
  texts,
  kind,
  field: 'inputs',
});
const long = 'x'.repeat(20);
const roomy = { maxAnswerBytes: 1e9, maxRowBytes: 1 };

const recipes = [
  ['embed', (...[served, input, context]: Arguments) => embed(served, input, null, context)],
  ['embed/sparse', (...[served, input, context]: Arguments) => sparseEmbed(served, input, context)],
  ['embed/multi', (...[served, input, context]: Arguments) => multiVector(served, input, roomy, context)],
] as const;
type Arguments = [
  served: ReturnType<typeof createServed>,
  input: ReturnType<typeof inputs>,
  context: ReturnType<typeof contextOf>,
];

describe.each(recipes)('the recipe of %s', (_, recipe) => {
  it('runs one item per text, in order, with the special tokens', async () => {
    const scheduler = createFakeScheduler();
    await recipe(createServed(), inputs(['ab', '', 'c']), contextOf(scheduler));
    expect(scheduler.jobs.map(({ items }) => items.map(({ ids }) => [...ids]))).toEqual([
      [
        [1, 97, 98, 2],
        [1, 2],
        [1, 99, 2],
      ],
    ]);
  });

  it('runs nothing for an empty list', async () => {
    const scheduler = createFakeScheduler();
    const served = createServed();
    const result = await recipe(served, inputs([]), contextOf(scheduler));
    expect(result.usage).toEqual(emptyUsage);
    expect(scheduler.loads).toEqual([]);
    expect(served.tokenizer.texts).toEqual([]);
  });

  it('reports real tokens with special ones, after truncation, and which texts were cut', async () => {
    const scheduler = createFakeScheduler();
    const { usage } = await recipe(createServed(), inputs(['ab', long, 'c', long]), contextOf(scheduler));
    expect(usage).toEqual({
      inputTokens: 4 + 16 + 3 + 16,
      truncated: [1, 3],
      queueMs: 2.4,
      computeMs: 3.6,
      device: 'cpu:0',
    });
  });

  it('refuses a text that is too long before any run, where it must not be cut', async () => {
    const scheduler = createFakeScheduler();
    const context = contextOf(scheduler, { truncation: 'refuse' });
    const error = await rejectionOf(recipe(createServed(), inputs(['ab', long]), context));
    expect(error).toMatchObject({
      errorName: 'invalidParams',
      data: { field: 'inputs[1]', tokens: 22, limit: 16, tokensIsMinimum: undefined },
    });
    expect(error.message).not.toContain('xx');
    expect(scheduler.jobs).toEqual([]);
    expect(scheduler.releaseCount()).toBe(1);
  });

  it('says so where the rest of a very long text was not counted', async () => {
    const context = contextOf(createFakeScheduler(), { truncation: 'refuse' });
    const error = await rejectionOf(recipe(createServed(), inputs(['x'.repeat(1000)]), context));
    expect(error.data).toMatchObject({ field: 'inputs[0]', tokensIsMinimum: true, limit: 16 });
  });

  it('puts the prompt of the kind before each text', async () => {
    const prompts = { query: 'q:', document: 'd:', unspecified: 'u:' };
    for (const [kind, expected] of [
      ['query', 'q:a'],
      ['document', 'd:a'],
      [null, 'u:a'],
    ] as const) {
      const served = createServed({ prompts });
      await recipe(served, inputs(['a'], kind), contextOf(createFakeScheduler()));
      expect(served.tokenizer.texts).toEqual([expected]);
    }
  });

  it('asks for room before it tokenises, and gives it back', async () => {
    const scheduler = createFakeScheduler();
    await recipe(createServed(), inputs(['abcdef', long]), contextOf(scheduler));
    expect(scheduler.loads).toEqual([{ items: 2, tokens: 4 + 9 }]);
    expect(scheduler.releaseCount()).toBe(1);
    const refusing = createFakeScheduler();
    refusing.refuse(new ServiceError('overloaded', 'full'));
    const served = createServed();
    expect((await rejectionOf(recipe(served, inputs(['a']), contextOf(refusing)))).errorName).toBe('overloaded');
    expect(served.tokenizer.texts).toEqual([]);
  });

  it('never asks for more room than the model can read', async () => {
    const scheduler = createFakeScheduler();
    await recipe(createServed(), inputs(['x'.repeat(1e6)]), contextOf(scheduler));
    expect(scheduler.loads).toEqual([{ items: 1, tokens: 16 }]);
  });

  it('passes on lane, model and signal, names its inputs, and reports progress up to the last', async () => {
    const scheduler = createFakeScheduler();
    const progress: [number, number][] = [];
    const context = contextOf(scheduler, { lane: 'bulk', onProgress: (done, total) => progress.push([done, total]) });
    await recipe(createServed({ modelId: 'other' }), inputs(['a', 'b', 'c']), context);
    const [job] = scheduler.jobs;
    expect(job).toMatchObject({ lane: 'bulk', signal: context.signal, key: { modelId: 'other', queryRows: null } });
    expect(job?.fieldOf(2)).toBe('inputs[2]');
    expect(progress).toEqual([
      [1, 3],
      [2, 3],
      [3, 3],
    ]);
  });

  it('ends with the reason of its abort, and gives its room back', async () => {
    const scheduler = createFakeScheduler();
    const reason = new ServiceError('deadlineExceeded', 'late');
    const context = contextOf(scheduler, { signal: AbortSignal.abort(reason) });
    expect(await rejectionOf(recipe(createServed(), inputs(['a']), context))).toBe(reason);
    expect(scheduler.releaseCount()).toBe(1);
    expect(scheduler.jobs).toEqual([]);
  });
});

describe('dimensions of a dense vector', () => {
  const row = { values: Float32Array.of(0.6, 0, 0.8, 0), indices: null };

  it('cut and renormalise', async () => {
    const result = await embed(
      createServed({ isMatryoshka: true }),
      inputs(['a']),
      2,
      contextOf(createFakeScheduler(() => row)),
    );
    expect(result.vectors.map((vector) => [...vector])).toEqual([[1, 0]]);
    expect(result.dimension).toBe(2);
  });

  it('of the full width, or none, leave the vector as it came', async () => {
    for (const dimensions of [null, 4]) {
      const scheduler = createFakeScheduler(() => row);
      const result = await embed(createServed({ isMatryoshka: true }), inputs(['a']), dimensions, contextOf(scheduler));
      expect(result.vectors[0]).toBe(row.values);
      expect(result.dimension).toBe(4);
    }
  });

  it('are in the answer even where there is no input', async () => {
    expect(await embed(createServed(), inputs([]), null, contextOf(createFakeScheduler()))).toMatchObject({
      vectors: [],
      dimension: 4,
    });
  });

  it.each([
    { isMatryoshka: false, dimensions: null, errorName: undefined },
    { isMatryoshka: false, dimensions: 4, errorName: undefined },
    { isMatryoshka: false, dimensions: 2, errorName: 'unsupportedOption' },
    { isMatryoshka: false, dimensions: 5, errorName: 'unsupportedOption' },
    { isMatryoshka: true, dimensions: 1, errorName: undefined },
    { isMatryoshka: true, dimensions: 4, errorName: undefined },
    { isMatryoshka: true, dimensions: 5, errorName: 'invalidParams' },
  ])('$dimensions of 4, matryoshka $isMatryoshka: $errorName', ({ isMatryoshka, dimensions, errorName }) => {
    let thrown: unknown;
    try {
      checkDimensions({ dimension: 4, isMatryoshka, modelId: 'm' }, dimensions);
    } catch (error) {
      thrown = error;
    }
    expect((thrown as ServiceError | undefined)?.errorName).toBe(errorName);
    if (thrown !== undefined) expect(thrown).toMatchObject({ data: { field: 'x-trivec.dimensions' } });
  });
});

describe('sparse vectors', () => {
  it('are the terms of each text, and none where it has none', async () => {
    const scheduler = createFakeScheduler((_item, _job, index) => ({
      values: Float32Array.of(...(index === 0 ? [0.5, 1.5] : [])),
      indices: index === 0 ? Int32Array.of(3, 9) : null,
    }));
    const { sparse } = await sparseEmbed(createServed(), inputs(['a', 'b']), contextOf(scheduler));
    expect(sparse).toEqual([
      { indices: Int32Array.of(3, 9), values: Float32Array.of(0.5, 1.5) },
      { indices: new Int32Array(), values: new Float32Array() },
    ]);
  });
});

describe('multi-vectors', () => {
  const served = () => createServed({ tokenRows: { ...plainTokenRows, documentSkipTokens: [',', '!'] } });
  const keptOf = async (text: string, kind: 'query' | 'document' | null) => {
    const scheduler = createFakeScheduler();
    await multiVector(served(), inputs([text], kind), roomy, contextOf(scheduler));
    const kept = scheduler.jobs[0]?.items[0]?.keptRows;
    return kept instanceof Int32Array ? [...kept] : kept;
  };

  it('of documents leave out the rows of skipped tokens, which the model still reads', async () => {
    expect(await keptOf('a,b!', 'document')).toEqual([0, 1, 3, 5]);
    expect(await keptOf('a,b!', null)).toEqual([0, 1, 3, 5]);
    expect(await keptOf('ab', 'document')).toBeNull();
  });

  it('of queries leave out none', async () => {
    expect(await keptOf('a,b!', 'query')).toBeNull();
  });

  it('that could be too large are refused before any run, with the estimate', async () => {
    const scheduler = createFakeScheduler();
    const bound = { maxAnswerBytes: 99, maxRowBytes: 10 };
    const error = await rejectionOf(multiVector(served(), inputs(['abcd', 'ab']), bound, contextOf(scheduler)));
    expect(error).toMatchObject({ errorName: 'tooLarge', data: { limit: 99, received: 100 } });
    expect(scheduler.jobs).toEqual([]);
    await multiVector(served(), inputs(['abcd', 'ab']), { ...bound, maxAnswerBytes: 100 }, contextOf(scheduler));
    expect(scheduler.jobs).toHaveLength(1);
  });
});
