import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plainForm, shapeIds } from '../../../src/tokenize/form.ts';
import { openReferenceLibrary } from '../../../src/tokenize/reference.ts';
import { anyText, loadQuietly } from './minilm.ts';
import { bertTemplate, byteLevelRoberta, closingTemplate, wordPiece, writeModelFolder } from './tiny-tokenizers.ts';

const limit = 12;
const marker = 9;
const filling = 10;
const mostlyKnown = fc.oneof(
  anyText,
  fc
    .array(fc.constantFrom('hello', 'world', ' ', '(', 'a', '[SEP]'), { maxLength: 40 })
    .map((parts) => parts.join(' ')),
);

async function load(definition: Parameters<typeof writeModelFolder>[0], maxTokens = limit) {
  return loadQuietly(await writeModelFolder(definition), maxTokens);
}

describe('a marker', () => {
  it('stands behind the first token, and the text is cut so that all of them fit', async () => {
    const tokenizer = await load(wordPiece(bertTemplate));
    const form = { ...plainForm, maxTokens: limit, markerId: marker };
    await fc.assert(
      fc.asyncProperty(mostlyKnown, async (text) => {
        const [marked] = await tokenizer.tokenize([text], undefined, form);
        const [plain] = await tokenizer.tokenize([text], undefined, { ...plainForm, maxTokens: limit - 1 });
        const [first = -1, ...rest] = plain?.ids ?? [];
        expect([...(marked?.ids ?? [])]).toEqual([first, marker, ...rest]);
        expect(marked?.ids.length).toBeLessThanOrEqual(limit);
        expect(marked?.totalTokens).toBe((plain?.totalTokens ?? NaN) + 1);
        expect(marked?.isTruncated).toBe((marked?.totalTokens ?? NaN) > limit);
      }),
      { numRuns: 100 },
    );
  });

  it.each([8, 9, 10, 11, 500])('with %i tokens of text never passes a limit of 12', async (words) => {
    const tokenizer = await load(wordPiece(bertTemplate));
    const form = { ...plainForm, maxTokens: limit, markerId: marker };
    const [text] = await tokenizer.tokenize(['a '.repeat(words)], undefined, form);
    expect(text?.ids).toHaveLength(Math.min(limit, words + 3));
    expect(text?.isTruncated).toBe(words + 3 > limit);
  });

  it('stands first in a text without any token', () => {
    const nothing = { ids: new Int32Array(), typeIds: null };
    expect(shapeIds(nothing, { ...plainForm, markerId: marker }, limit).ids).toEqual(Int32Array.of(marker));
  });

  it('has the segment of the first token', () => {
    const text = { ids: Int32Array.of(1, 2), typeIds: Uint8Array.of(1, 0) };
    expect(shapeIds(text, { ...plainForm, markerId: marker }, limit)).toEqual({
      ids: Int32Array.of(1, marker, 2),
      typeIds: Uint8Array.of(1, 1, 0),
    });
  });
});

describe('filling', () => {
  const form = { ...plainForm, maxTokens: limit, markerId: marker, expansionId: filling };

  it('brings every text to the limit exactly, the last special token before it', async () => {
    const tokenizer = await load(wordPiece(bertTemplate));
    await fc.assert(
      fc.asyncProperty(mostlyKnown, async (text) => {
        const [filled] = await tokenizer.tokenize([text], undefined, form);
        const [marked] = await tokenizer.tokenize([text], undefined, { ...form, expansionId: null });
        const own = marked?.ids.length ?? NaN;
        expect(filled?.ids).toHaveLength(limit);
        expect(filled?.ids.slice(0, own)).toEqual(marked?.ids);
        expect([...(filled?.ids.slice(own) ?? [])].every((id) => id === filling)).toBe(true);
        expect(filled?.attendedTokens).toBe(own < limit ? own : undefined);
        expect(filled?.isTruncated).toBe(marked?.isTruncated);
      }),
      { numRuns: 100 },
    );
  });

  it('that the other tokens see needs no mark', async () => {
    const tokenizer = await load(wordPiece(bertTemplate));
    const [text] = await tokenizer.tokenize(['a'], undefined, { ...form, isExpansionAttended: true });
    expect(text?.ids).toHaveLength(limit);
    expect(text).not.toHaveProperty('attendedTokens');
  });
});

describe('a closing token', () => {
  it.each([
    ['WordPiece', wordPiece(closingTemplate), [], 3],
    ['BERT', wordPiece(bertTemplate), [2], 3],
    ['byte-level BPE', byteLevelRoberta(), [0], 2],
  ] as const)('of %s is put once, behind what fits of the text', async (_name, definition, opening, closing) => {
    const folder = await writeModelFolder(definition);
    const tokenizer = await loadQuietly(folder, limit);
    const library = await openReferenceLibrary(folder);
    await fc.assert(
      fc.asyncProperty(mostlyKnown, async (text) => {
        const [tokenized] = await tokenizer.tokenize([text]);
        const [own = []] = await library.encodeBatch([text.toWellFormed()]);
        const kept = Array.from(own).slice(0, limit - opening.length - 1);
        expect([...(tokenized?.ids ?? [])]).toEqual([...opening, ...kept, closing]);
      }),
      { numRuns: 100 },
    );
  });
});

describe('a prompt whose tokens are counted', () => {
  const counted = (countedPrompt: string) => ({ ...plainForm, countedPrompt });

  it('counts with the first special token and without the last one', async () => {
    const tokenizer = await load(wordPiece(bertTemplate));
    const [text] = await tokenizer.tokenize(['hello world a b'], undefined, counted('hello world '));
    expect(text?.promptTokens).toBe(3);
  });

  it('counts all its tokens where no special token stands at the end', async () => {
    const tokenizer = await load(wordPiece(null));
    const [text] = await tokenizer.tokenize(['hello world a'], undefined, counted('hello world '));
    expect(text?.promptTokens).toBe(2);
  });

  it('never counts more than the text has, or than fit', async () => {
    const tokenizer = await load(wordPiece(bertTemplate));
    const long = 'hello '.repeat(50);
    const [cut] = await tokenizer.tokenize([`${long}a`], undefined, counted(long));
    expect(cut?.promptTokens).toBe(limit - 1);
  });

  it('that is empty is not counted', async () => {
    const tokenizer = await load(wordPiece(bertTemplate));
    expect((await tokenizer.tokenize(['a'], undefined, counted('')))[0]).not.toHaveProperty('promptTokens');
  });
});

describe('a text without special tokens', () => {
  it('has its own tokens only, up to the limit of its form', async () => {
    const tokenizer = await load(wordPiece(bertTemplate));
    const form = { ...plainForm, hasSpecialTokens: false, maxTokens: 20 };
    const [empty, short, long] = await tokenizer.tokenize(['', 'a b', 'a '.repeat(50)], undefined, form);
    expect(empty?.ids).toHaveLength(0);
    expect(short?.ids).toEqual(Int32Array.of(6, 7));
    expect(long?.ids).toHaveLength(20);
    expect(long).toMatchObject({ isTruncated: true, totalTokens: 50 });
  });
});
