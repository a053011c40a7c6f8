import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { TextTokenizer, TokenDetail } from '../../../src/tokenize/tokenizer.ts';
import { anyText, loadMinilm } from './minilm.ts';

let tokenizer: TextTokenizer;
beforeAll(async () => {
  tokenizer = await loadMinilm(16);
});

const special = (id: number, text: string): TokenDetail => ({ id, text, isSpecial: true, start: null, end: null });
const own = (id: number, text: string, start: number, end: number): TokenDetail => ({
  id,
  text,
  isSpecial: false,
  start,
  end,
});

describe('the tokens of a text', () => {
  it('are those of the model, between its special tokens, each with the part of the text that it stands for', async () => {
    expect(await tokenizer.detailsOf('What is tomING?', true)).toEqual([
      special(101, '[CLS]'),
      own(2054, 'What', 0, 4),
      own(2003, 'is', 5, 7),
      own(3419, 'tom', 8, 11),
      own(2075, 'ING', 11, 14),
      own(1029, '?', 14, 15),
      special(102, '[SEP]'),
    ]);
  });

  it('have places in characters, accents, ideographs and letters beyond the first plane included', async () => {
    expect(await tokenizer.detailsOf('H\u00e9llo \u{1f600} w\u00f6rking \u65e5\u672c', false)).toEqual([
      own(7592, 'H\u00e9llo', 0, 5),
      own(100, '\u{1f600}', 6, 7),
      own(2551, 'w\u00f6rking', 8, 15),
      own(1864, '\u65e5', 16, 17),
      own(1876, '\u672c', 17, 18),
    ]);
  });

  it('of a special token that stands in the text are no special tokens of the model', async () => {
    expect(await tokenizer.detailsOf('a [SEP]', false)).toEqual([own(1037, 'a', 0, 1), own(102, '[SEP]', 2, 7)]);
  });

  it('of nothing are the special tokens, or none', async () => {
    expect(await tokenizer.detailsOf('', true)).toEqual([special(101, '[CLS]'), special(102, '[SEP]')]);
    expect(await tokenizer.detailsOf('', false)).toEqual([]);
  });

  it('have the ids that run, are not cut, and stand in the text where they say, whatever the text is', async () => {
    const whole = await loadMinilm(4_096);
    await fc.assert(
      fc.asyncProperty(anyText, async (text) => {
        const details = await tokenizer.detailsOf(text, true);
        const [found] = await whole.tokenize([text]);
        expect(details.map(({ id }) => id)).toEqual([...(found?.ids ?? [])]);
        const characters = [...text.toWellFormed()];
        for (const { isSpecial, text: part, start, end } of details) {
          if (!isSpecial) expect(characters.slice(start ?? 0, end ?? 0).join('')).toBe(part);
        }
      }),
    );
  });

  it('take a lone half of a surrogate pair for one character', async () => {
    expect((await tokenizer.detailsOf('\ud83d a', false)).at(-1)).toEqual(own(1037, 'a', 2, 3));
  });
});

describe('the text of ids', () => {
  it('is put together as the tokenizer does it, with or without special tokens', async () => {
    const ids = [[101, 2054, 2003, 3419, 2075, 1029, 102], [], [1864]];
    expect(await tokenizer.decode(ids, true)).toEqual(['what is toming?', '', '\u65e5']);
    expect(await tokenizer.decode(ids, false)).toEqual(['[CLS] what is toming? [SEP]', '', '\u65e5']);
  });
});
