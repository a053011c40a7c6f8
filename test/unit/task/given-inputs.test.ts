import { beforeAll, describe, expect, it } from 'vitest';
import type { Truncation } from '../../../src/task/context.ts';
import { embed } from '../../../src/task/embed.ts';
import { multiVector } from '../../../src/task/multi-vector.ts';
import { rerank } from '../../../src/task/rerank.ts';
import { sparseEmbed } from '../../../src/task/sparse-embed.ts';
import type { TextOrIds, TextTokenizer } from '../../../src/tokenize/tokenizer.ts';
import { loadMinilm } from '../tokenize/minilm.ts';
import { contextOf, createFakeScheduler, createServed, rejectionOf } from './fakes.ts';

const inputs = (texts: readonly TextOrIds[], prompt?: string) => ({
  texts,
  kind: null,
  field: 'input',
  ...(prompt === undefined ? {} : { prompt }),
});
const roomy = { maxAnswerBytes: 1e9, maxRowBytes: 1 };
const [classToken, separator] = [101, 102];
const maxTokens = 8;

let tokenizer: TextTokenizer;
beforeAll(async () => {
  tokenizer = await loadMinilm(maxTokens);
});

/** The embedded model's tokenizer, with a model of these facts. */
const serve = (manifest: Parameters<typeof createServed>[0] = {}) => ({
  ...createServed({ maxTokens, vocabularySize: 30_522, ...manifest }),
  tokenizer,
});

const recipes = [
  ['embed', (...[served, input, context]: Arguments) => embed(served, input, null, context)],
  ['embed/sparse', (...[served, input, context]: Arguments) => sparseEmbed(served, input, context)],
  ['embed/multi', (...[served, input, context]: Arguments) => multiVector(served, input, roomy, context)],
] as const;
type Arguments = [
  served: ReturnType<typeof serve>,
  input: ReturnType<typeof inputs>,
  context: ReturnType<typeof contextOf>,
];

const ranOf = (scheduler: ReturnType<typeof createFakeScheduler>): number[][] =>
  scheduler.jobs.flatMap(({ items }) => items.map(({ ids }) => [...ids]));

describe.each(recipes)('token ids as inputs of %s', (_, recipe) => {
  it('run between the special tokens, beside texts, and are counted one by one', async () => {
    const scheduler = createFakeScheduler();
    const { tokenCounts, usage } = await recipe(serve(), inputs([[1037, 4949], 'a', []]), contextOf(scheduler));
    expect(ranOf(scheduler)).toEqual([
      [classToken, 1037, 4949, separator],
      [classToken, 1037, separator],
      [classToken, separator],
    ]);
    expect(tokenCounts).toEqual([4, 3, 2]);
    expect(usage.inputTokens).toBe(9);
  });

  it('are admitted with exactly the tokens that will run', async () => {
    const scheduler = createFakeScheduler();
    await recipe(serve(), inputs([[1037, 4949, 1037], Array<number>(100).fill(1037)]), contextOf(scheduler));
    expect(scheduler.loads).toEqual([{ items: 2, tokens: 3 + 2 + maxTokens }]);
  });

  it.each([
    ['beyond the vocabulary', 30_522],
    ['negative', -1],
    ['a fraction', 1.5],
    ['not a number', Number.NaN],
  ])('are refused where one is %s, before anything is asked for, naming limit and value', async (_name, id) => {
    const scheduler = createFakeScheduler();
    const error = await rejectionOf(recipe(serve(), inputs(['a', [1037, id]]), contextOf(scheduler)));
    expect(error).toMatchObject({
      errorName: 'invalidParams',
      data: { field: 'input[1]', limit: 30_521, received: id },
    });
    expect(error.message).toContain(String(id));
    expect(error.message).toContain('30521');
    expect(scheduler.loads).toEqual([]);
  });

  it('are bounded by the rows that the graph has for tokens', async () => {
    const served = serve({ tokenTableRows: 1000 });
    const error = await rejectionOf(recipe(served, inputs([[1000]]), contextOf(createFakeScheduler())));
    expect(error.data.limit).toBe(999);
  });

  it('get the prompt of their kind as tokens', async () => {
    const scheduler = createFakeScheduler();
    const served = serve({ prompts: { query: 'a ', document: '', unspecified: 'map ' } });
    await recipe(served, { ...inputs([[2712], 'sea']), kind: null }, contextOf(scheduler));
    const expected = [classToken, 4949, 2712, separator];
    expect(ranOf(scheduler)).toEqual([expected, expected]);
  });
});

describe.each(recipes)('a prompt of the call, for %s', (_, recipe) => {
  it.each([
    ['map ', [4949]],
    ['', []],
  ])("%j goes before texts and ids in the place of the kind's", async (prompt, tokens) => {
    const scheduler = createFakeScheduler();
    const served = serve({ prompts: { query: 'a ', document: '', unspecified: 'a ' } });
    await recipe(served, inputs([[2712], 'sea'], prompt), contextOf(scheduler));
    const expected = [classToken, ...tokens, 2712, separator];
    expect(ranOf(scheduler)).toEqual([expected, expected]);
  });
});

const seven = 'one two three four five six seven';
const [one, two, three, four, five, six, seventh] = [2028, 2048, 2093, 2176, 2274, 2416, 2698];
const start = [one, two, three, four, five, six];
const end = [two, three, four, five, six, seventh];

describe.each(recipes)('what becomes of texts of %s that are too long', (_, recipe) => {
  it.each([
    [null, start],
    ['keepStart', start],
    ['keepEnd', end],
  ] as const)('%s', async (truncation: Truncation, kept) => {
    const scheduler = createFakeScheduler();
    const ids = [one, two, three, four, five, six, seventh];
    const { usage, tokenCounts } = await recipe(serve(), inputs([seven, ids]), contextOf(scheduler, { truncation }));
    expect(ranOf(scheduler)).toEqual([
      [classToken, ...kept, separator],
      [classToken, ...kept, separator],
    ]);
    expect(usage.truncated).toEqual([0, 1]);
    expect(tokenCounts).toEqual([maxTokens, maxTokens]);
  });

  it('refuse: ids as well as texts', async () => {
    const context = contextOf(createFakeScheduler(), { truncation: 'refuse' });
    const error = await rejectionOf(recipe(serve(), inputs(['a', Array<number>(7).fill(1037)]), context));
    expect(error).toMatchObject({ errorName: 'invalidParams', data: { field: 'input[1]', tokens: 9, limit: 8 } });
  });
});

describe('what becomes of passages that are too long', () => {
  it.each([
    ['cross-encoder', null, [classToken, 1037, separator, one, two, three, four, separator]],
    ['cross-encoder', 'keepEnd', [classToken, 1037, separator, four, five, six, seventh, separator]],
    ['colbert', 'keepStart', [classToken, ...start, separator]],
    ['colbert', 'keepEnd', [classToken, ...end, separator]],
  ] as const)('%s, %s', async (method, truncation: Truncation, expected) => {
    const scheduler = createFakeScheduler();
    const input = { query: 'a', passages: [seven], field: 'documents' };
    await rerank({ method, served: serve() }, input, contextOf(scheduler, { truncation }));
    expect(ranOf(scheduler).at(-1)).toEqual(expected);
  });
});

describe('a limit of the caller below that of the model', () => {
  const limited = (maxTokens: number) => ({ ...inputs([seven, [one, two, three, four]]), maxTokens });

  it.each(recipes)('%s: is held with special tokens and prompt, and whole texts stay whole', async (_, recipe) => {
    const scheduler = createFakeScheduler();
    const served = serve({ prompts: { query: '', document: '', unspecified: 'map ' } });
    const { usage } = await recipe(served, limited(6), contextOf(scheduler));
    expect(ranOf(scheduler)).toEqual([
      [classToken, 4949, one, two, three, separator],
      [classToken, 4949, one, two, three, separator],
    ]);
    expect(usage).toMatchObject({ inputTokens: 12, truncated: [0, 1] });
  });

  it.each(recipes)('%s: keeps the last ids of the whole text where its end is kept', async (_, recipe) => {
    const scheduler = createFakeScheduler();
    await recipe(serve(), limited(5), contextOf(scheduler, { truncation: 'keepEnd' }));
    expect(ranOf(scheduler)).toEqual([
      [classToken, five, six, seventh, separator],
      [classToken, two, three, four, separator],
    ]);
  });

  it.each(recipes)('%s: above the model’s it changes nothing', async (_, recipe) => {
    const [with_, without] = [createFakeScheduler(), createFakeScheduler()];
    await recipe(serve(), limited(maxTokens + 1), contextOf(with_));
    await recipe(serve(), inputs([seven, [one, two, three, four]]), contextOf(without));
    expect(ranOf(with_)).toEqual(ranOf(without));
  });

  it.each(recipes)('%s: is told where a text may not be cut, and where no token has room', async (_, recipe) => {
    const strict = contextOf(createFakeScheduler(), { truncation: 'refuse' });
    const long = await rejectionOf(recipe(serve(), limited(7), strict));
    expect(long).toMatchObject({ data: { field: 'input[0]', tokens: 9, limit: 7 } });
    const scheduler = createFakeScheduler();
    const none = await rejectionOf(recipe(serve(), limited(2), contextOf(scheduler)));
    expect(none).toMatchObject({ errorName: 'invalidParams', data: { field: 'maxTokens', limit: 3, received: 2 } });
    expect(scheduler.loads).toEqual([]);
  });

  it.each(recipes)('%s: has room for a token of the text behind the prompt', async (_, recipe) => {
    const served = serve({ prompts: { query: '', document: '', unspecified: 'map ' } });
    const scheduler = createFakeScheduler();
    const none = await rejectionOf(recipe(served, limited(3), contextOf(scheduler)));
    expect(none).toMatchObject({ data: { field: 'maxTokens', limit: 4, received: 3 } });
    await recipe(served, limited(4), contextOf(scheduler));
    expect(ranOf(scheduler)[0]).toEqual([classToken, 4949, one, separator]);
  });

  it.each([
    ['cross-encoder', [classToken, 1037, separator, 4949, one, separator]],
    ['colbert', [classToken, 4949, one, separator]],
  ] as const)('rerank by %s: is of the passage without its prompt', async (method, expected) => {
    const scheduler = createFakeScheduler();
    const served = serve({ prompts: { query: '', document: 'map ', unspecified: '' } });
    const input = { query: 'a', passages: [seven], field: 'documents', maxPassageTokens: 1 };
    await rerank({ method, served }, input, contextOf(scheduler));
    expect(ranOf(scheduler).at(-1)).toEqual(expected);
  });

  it.each([
    ['cross-encoder', null, 2, [classToken, 1037, separator, one, two, separator]],
    ['cross-encoder', 'keepEnd', 3, [classToken, 1037, separator, five, six, seventh, separator]],
    ['cross-encoder', null, 100, [classToken, 1037, separator, one, two, three, four, separator]],
    ['colbert', null, 1, [classToken, one, separator]],
    ['colbert', 'keepEnd', 2, [classToken, six, seventh, separator]],
  ] as const)('rerank by %s, %s: %i tokens of a passage itself', async (method, truncation, most, expected) => {
    const scheduler = createFakeScheduler();
    const input = { query: 'a', passages: [seven], field: 'documents', maxPassageTokens: most };
    const { usage } = await rerank({ method, served: serve() }, input, contextOf(scheduler, { truncation }));
    expect(ranOf(scheduler).at(-1)).toEqual(expected);
    expect(usage.truncated).toEqual([0]);
  });
});

describe('rows of the query by which a colbert score becomes a mean', () => {
  it('are those that ran, and 1 where the score is a mean already; other methods have none', async () => {
    const rowsOf = async (method: 'colbert' | 'cross-encoder', isMaxSimAveraged: boolean) => {
      const { tokenRows } = serve().manifest;
      const served = serve({ rowDimension: 2, tokenRows: { ...tokenRows, isMaxSimAveraged } });
      const scheduler = createFakeScheduler(({ ids }, { key }) => ({
        values: key.head === 'rows' ? new Float32Array(ids.length * 2) : Float32Array.of(6),
        indices: null,
      }));
      const input = { query: 'a map', passages: ['sea'], field: 'documents' };
      const { queryRows, raw } = await rerank({ method, served }, input, contextOf(scheduler));
      return { queryRows, raw };
    };
    expect(await rowsOf('colbert', false)).toEqual({ queryRows: 4, raw: [6] });
    expect(await rowsOf('colbert', true)).toEqual({ queryRows: 1, raw: [1.5] });
    expect(await rowsOf('cross-encoder', false)).toEqual({ queryRows: null, raw: [6] });
  });
});
