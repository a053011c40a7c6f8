import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openReferenceLibrary } from '../../../src/tokenize/reference.ts';
import { loadQuietly, longText } from './minilm.ts';
import { bertTemplate, byteLevelRoberta, closingTemplate, wordPiece, writeModelFolder } from './tiny-tokenizers.ts';

type Definition = Parameters<typeof writeModelFolder>[0];

async function load(definition: Definition, maxTokens = 32) {
  return loadQuietly(await writeModelFolder(definition), maxTokens);
}

async function idsIn(definition: Definition, texts: readonly string[], maxTokens = 32) {
  return (await (await load(definition, maxTokens)).tokenize(texts)).map(({ ids }) => [...ids]);
}

describe('what tokenizer.json carries', () => {
  it('its padding and truncation are ignored: lengths are those of the texts', async () => {
    const words = (count: number) => Array<string>(count).fill('hello').join(' ');
    const ids = await idsIn(wordPiece(bertTemplate), [words(10), words(200)], 512);
    expect(ids.map((each) => each.length)).toEqual([12, 202]);
  });

  it('the side of its padding changes nothing: a short text beside a long one ends with its own last token', async () => {
    const texts = ['hello', 'hello world a hello world'];
    const idsPadded = (direction: 'Left' | 'Right') => {
      const padding = { strategy: 'BatchLongest', direction, pad_id: 0, pad_type_id: 0, pad_token: '[PAD]' };
      return idsIn({ ...wordPiece(closingTemplate), padding: { pad_to_multiple_of: null, ...padding } }, texts);
    };
    const expected = [
      [4, 3],
      [4, 5, 6, 4, 5, 3],
    ];
    expect(await idsPadded('Left')).toEqual(expected);
    expect(await idsPadded('Right')).toEqual(expected);
  });

  it('a closing token stands exactly once at the end of short, fitting and over-long texts', async () => {
    const ids = await idsIn(wordPiece(closingTemplate), ['hello', 'a a a', 'a a a a', ''], 4);
    expect(ids).toEqual([[4, 3], [6, 6, 6, 3], [6, 6, 6, 3], [3]]);
  });

  it('a model without a post-processor gets no special tokens', async () => {
    const tokenizer = await load(wordPiece(null));
    expect((await tokenizer.tokenize(['hello world']))[0]?.ids).toEqual(Int32Array.of(4, 5));
    expect((await tokenizer.tokenizePairs('hello', ['world']))[0]?.ids).toEqual(Int32Array.of(4, 5));
  });

  it('each flag of an added token is honoured', async () => {
    const added = (id: number, content: string, flags: Definition) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: false,
      ...flags,
    });
    const definition = wordPiece(bertTemplate, [
      added(18, 'Exact', {}),
      added(19, 'Folded', { normalized: true }),
      added(20, 'Alone', { single_word: true }),
      added(21, '<l>', { lstrip: true }),
      added(22, '<r>', { rstrip: true }),
    ]);
    const texts = ['Exact', 'exact', 'helloExact', 'Folded', 'FOLDED', 'folded', 'Alone', 'Alonea', 'a  <l>', '<r>  a'];
    const ids = (await idsIn(definition, texts)).map((each) => each.slice(1, -1));
    expect(ids).toEqual([[18], [1], [4, 18], [19], [19], [19], [20], [1], [6, 21], [22, 6]]);
  });

  it('a limit that the special tokens fill ends the start', async () => {
    await expect(load(wordPiece(bertTemplate), 2)).rejects.toMatchObject({ name: 'ConfigurationError' });
  });
});

describe('byte-level BPE with the RoBERTa template', () => {
  it('line break, blank and leading blank give three different texts', async () => {
    const ids = await idsIn(byteLevelRoberta(), ['a\nb', 'a b', ' a b']);
    expect(new Set(ids.map((each) => each.join())).size).toBe(3);
  });

  it('a pair has four special tokens, all in segment 0, as the library gives it', async () => {
    const folder = await writeModelFolder(byteLevelRoberta());
    const tokenizer = await loadQuietly(folder, 512);
    const library = await openReferenceLibrary(folder);
    const text = fc.string({ unit: 'grapheme', maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(text, text, async (query, passage) => {
        const [pair] = await tokenizer.tokenizePairs(query, [passage]);
        expect([...(pair?.ids ?? [])]).toEqual((await library.encodeWithSpecialTokens(query, passage)).ids);
        expect(pair?.typeIds).toBeNull();
      }),
      { numRuns: 100 },
    );
  });

  it('a cut passage keeps the closing token', async () => {
    const tokenizer = await load(byteLevelRoberta(), 16);
    const [pair] = await tokenizer.tokenizePairs('hello', ['x'.repeat(50)]);
    expect([...(pair?.ids ?? [])].filter((id) => id < 4)).toEqual([0, 2, 2, 2]);
    expect(pair?.ids).toHaveLength(16);
    expect(pair?.ids.at(-1)).toBe(2);
  });

  it('half an emoji is U+FFFD', async () => {
    const [half, replaced] = await idsIn(byteLevelRoberta(), ['hi \ud83d', 'hi \ufffd']);
    expect(half).toEqual(replaced);
  });

  it('a long text that was cut in characters keeps the ids of the whole text', async () => {
    const folder = await writeModelFolder(byteLevelRoberta());
    const tokenizer = await loadQuietly(folder, 100);
    const library = await openReferenceLibrary(folder);
    await fc.assert(
      fc.asyncProperty(longText, async (text) => {
        const [whole = []] = await library.encodeBatch([text.toWellFormed()]);
        const [result] = await tokenizer.tokenize([text]);
        expect([...(result?.ids.slice(1, -1) ?? [])]).toEqual(Array.from(whole).slice(0, 98));
      }),
      { numRuns: 60 },
    );
  }, 120_000);
});
