import { beforeAll, describe, expect, it } from 'vitest';
import { plainForm } from '../../../src/tokenize/form.ts';
import type { TextTokenizer } from '../../../src/tokenize/tokenizer.ts';
import { loadMinilm } from './minilm.ts';

let tokenizer: TextTokenizer;
beforeAll(async () => {
  tokenizer = await loadMinilm(16);
});

/** The ids of a text without its special tokens. */
async function idsOf(text: string): Promise<number[]> {
  const whole = await loadMinilm(1024);
  const [found] = await whole.tokenize([text], undefined, { ...plainForm, hasSpecialTokens: false });
  return [...(found?.ids ?? [])];
}

const long = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen';

describe('inputs that are ids already', () => {
  it('become exactly what their text becomes, whatever stands beside them', async () => {
    const texts = ['a map of the sea', '', long, 'caf\u00e9 \u4e2d\u6587 \u{1f600}'];
    const ids = await Promise.all(texts.map(idsOf));
    for (const keptSide of [null, 'start', 'end'] as const) {
      const form = { ...plainForm, keptSide };
      const expected = await tokenizer.tokenize(texts, undefined, form);
      expect(await tokenizer.tokenize(ids, undefined, form)).toEqual(expected);
      const mixed = texts.map((text, index) => (index % 2 === 0 ? (ids[index] ?? []) : text));
      expect(await tokenizer.tokenize(mixed, undefined, form)).toEqual(expected);
    }
  });

  it('get the prompt of their kind as tokens before them, as their text would have it', async () => {
    const prompt = 'represent this: ';
    const form = { ...plainForm, idPrompt: prompt };
    for (const text of ['a map', long, '']) {
      const [expected] = await tokenizer.tokenize([prompt + text], undefined, plainForm);
      const [found] = await tokenizer.tokenize([await idsOf(text)], undefined, form);
      expect(found).toEqual(expected);
    }
  });

  it('leave texts beside them without that prompt: they begin with it already', async () => {
    const [text] = await tokenizer.tokenize(['a map', [1037]], undefined, { ...plainForm, idPrompt: 'query: ' });
    expect(text).toEqual((await tokenizer.tokenize(['a map']))[0]);
  });

  it('count the tokens of a prompt that is left out of the pooling', async () => {
    const prompt = 'represent this: ';
    const form = { ...plainForm, idPrompt: prompt, countedPrompt: prompt };
    const [expected] = await tokenizer.tokenize([`${prompt}a map`], undefined, form);
    const [found] = await tokenizer.tokenize([await idsOf('a map')], undefined, form);
    expect(found?.promptTokens).toBe(4);
    expect(found).toEqual(expected);
  });

  it('lose the prompt first where their end is kept, and it is not left out of the pooling any more', async () => {
    const prompt = 'represent this: ';
    const form = { ...plainForm, idPrompt: prompt, countedPrompt: prompt, keptSide: 'end' as const };
    const text = 'one two three four five six seven eight nine ten eleven twelve';
    const both = await tokenizer.tokenize([prompt + text, await idsOf(text)], undefined, form);
    // 3 + 12 ids for 14 places: one of the prompt is gone, and the class token counts with the two that are left.
    expect(both.map(({ promptTokens }) => promptTokens)).toEqual([3, 3]);
    const [gone] = await tokenizer.tokenize([prompt + long + long], undefined, form);
    expect(gone?.promptTokens).toBe(0);
  });

  it('have a marker and a filling like texts', async () => {
    const form = { ...plainForm, markerId: 1, expansionId: 103, maxTokens: 12 };
    const [expected] = await tokenizer.tokenize(['a map of the sea'], undefined, form);
    expect(await tokenizer.tokenize([await idsOf('a map of the sea')], undefined, form)).toEqual([expected]);
  });

  it('are cut at once, however many they are', async () => {
    const [found] = await tokenizer.tokenize([Array<number>(2_000_000).fill(1037)]);
    expect(found).toMatchObject({ isTruncated: true, totalTokens: 2_000_002, isTotalMinimum: false });
    expect(found?.ids).toHaveLength(16);
  });

  it('the tokenizer says which ids it has, and how many special tokens it adds', () => {
    expect(tokenizer.idEnd).toBe(30_522);
    expect(tokenizer.specialTokens).toBe(2);
  });
});
