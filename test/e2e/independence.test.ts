import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDocuments, readQueries } from '../support/corpus.ts';
import { startServed, type Served } from '../support/served.ts';

const timeoutMs = 180_000;
const textCount = 50;

/** What a text's value is compared by: bytes and numbers exactly as they were sent. */
type Value = string;
interface Kind {
  readonly name: string;
  readonly ask: (served: Served, texts: readonly string[], priority?: 'interactive' | 'bulk') => Promise<Value[]>;
}

const query = readQueries()[0]?.text ?? '';
const vendor = (priority?: 'interactive' | 'bulk') => (priority === undefined ? {} : { 'x-trivec': { priority } });
const toValues = (list: readonly unknown[]): Value[] => list.map((value) => JSON.stringify(value));

const kinds: readonly Kind[] = [
  {
    name: 'dense vectors',
    async ask(served, inputs, priority) {
      const params = { inputs, encoding: 'f32-base64', ...vendor(priority) };
      return toValues((await served.call<{ vectors: string[] }>('embed', params)).vectors);
    },
  },
  {
    name: 'sparse vectors',
    async ask(served, texts, priority) {
      return toValues(
        (await served.call<{ sparse: unknown[] }>('embed/sparse', { texts, ...vendor(priority) })).sparse,
      );
    },
  },
  {
    name: 'token rows',
    async ask(served, inputs, priority) {
      const params = { inputs, kind: 'document', encoding: 'f32-base64', ...vendor(priority) };
      return toValues((await served.call<{ matrices: string[][] }>('embed/multi', params)).matrices);
    },
  },
  {
    name: 'colbert scores',
    async ask(served, passages, priority) {
      const params = { query, passages, ...vendor(priority) };
      return toValues((await served.call<{ scores: number[] }>('rerank', params)).scores);
    },
  },
];

/** Short, ordinary and empty texts of the corpus, spread over all of it. */
function chooseTexts(): string[] {
  const documents = readDocuments();
  const empty = documents.filter(({ text }) => text === '');
  expect(empty.map(({ id }) => id)).toEqual(['471', '995']);
  const step = Math.floor(documents.length / (textCount - empty.length));
  const spread = documents.filter((_, index) => index % step === 0).slice(0, textCount - empty.length);
  // Every third is cut to its first words, so that lengths from two tokens to the limit are there.
  const texts = spread.map(({ text }, index) => (index % 3 === 0 ? text.split(' ').slice(0, index).join(' ') : text));
  return [...texts, ...empty.map(({ text }) => text)];
}

describe('the value of a text depends on nothing but the text', { timeout: timeoutMs }, () => {
  let served: Served;
  const texts = chooseTexts();
  const long = 'boundary layer '.repeat(400);
  const alone = new Map<string, Value[]>();
  const aloneOf = (kind: Kind, index: number) => alone.get(kind.name)?.[index];

  beforeAll(async () => {
    served = await startServed({ flags: ['--deadline-ms', String(timeoutMs)] });
    for (const kind of kinds) {
      const values: Value[] = [];
      // One after the other: each runs with no company at all.
      for (const text of texts) values.push((await kind.ask(served, [text]))[0] ?? '');
      alone.set(kind.name, values);
    }
  }, timeoutMs);
  afterAll(() => served.end());

  it('there are 50 texts with values, of which different texts have different ones', () => {
    expect(texts).toHaveLength(textCount);
    for (const kind of kinds) {
      const values = alone.get(kind.name) ?? [];
      expect(values.every((value) => value.length > 1)).toBe(true);
      expect(new Set(values).size, kind.name).toBe(new Set(texts).size);
    }
  });

  it.each(kinds)('$name: alone equals in the list of all, bit for bit', async (kind) => {
    expect(await kind.ask(served, texts)).toEqual(alone.get(kind.name));
  });

  it.each(kinds)('$name: alone equals in any list, in any order, beside a long text, bit for bit', async (kind) => {
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(
          texts.map((_, index) => index),
          { minLength: 2, maxLength: 16 },
        ),
        fc.boolean(),
        async (indices, isLongFirst) => {
          const chosen = indices.map((index) => texts[index] ?? '');
          const list = isLongFirst ? [long, ...chosen] : [...chosen, long];
          const values = await kind.ask(served, list);
          const found = isLongFirst ? values.slice(1) : values.slice(0, -1);
          expect(found).toEqual(indices.map((index) => aloneOf(kind, index)));
        },
      ),
      { numRuns: 4, endOnFailure: true },
    );
  });

  it('all kinds: alone equals what 16 callers get at the same time, in both priorities, bit for bit', async () => {
    const jobs = texts.flatMap((_, index) => kinds.map((kind) => ({ kind, index })));
    let next = 0;
    const differing: string[] = [];
    const caller = async (_: unknown, position: number) => {
      for (let job = jobs[next++]; job !== undefined; job = jobs[next++]) {
        const { kind, index } = job;
        const priority = position % 2 === 0 ? 'bulk' : 'interactive';
        const [value] = await kind.ask(served, [texts[index] ?? ''], priority);
        if (value !== aloneOf(kind, index)) differing.push(`${kind.name} of text ${String(index)}`);
      }
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    expect(differing).toEqual([]);
    expect(next).toBeGreaterThanOrEqual(jobs.length);
  });

  it('the same text in one list twice has the same value twice', async () => {
    const twice = [texts[1] ?? '', texts[4] ?? '', texts[1] ?? ''];
    for (const kind of kinds) {
      const values = await kind.ask(served, twice);
      expect(values, kind.name).toEqual([aloneOf(kind, 1), aloneOf(kind, 4), aloneOf(kind, 1)]);
    }
  });
});
