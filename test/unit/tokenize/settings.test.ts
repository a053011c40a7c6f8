/** Owns the rules of the settings beside a tokenizer's definition: each gives what the reference gives. */
import { createRequire } from 'node:module';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openReferenceLibrary } from '../../../src/tokenize/reference.ts';
import { readTokenizerSettings } from '../../../src/tokenize/settings.ts';
import { openTransformersJsLibrary } from '../../../src/tokenize/transformers-js.ts';
import { loadQuietly, longText } from './minilm.ts';
import { bertTemplate, byteLevelRoberta, wordPiece, writeModelFolder } from './tiny-tokenizers.ts';

interface Files {
  readonly tokenizer?: Readonly<Record<string, unknown>>;
  readonly sentence?: Readonly<Record<string, unknown>>;
  readonly model?: Readonly<Record<string, unknown>>;
}

async function folderWith(definition: Readonly<Record<string, unknown>>, files: Files): Promise<string> {
  const folder = await writeModelFolder(definition);
  const write = async (name: string, content: unknown) => {
    if (content !== undefined) await writeFile(join(folder, name), JSON.stringify(content));
  };
  await write('tokenizer_config.json', files.tokenizer);
  await write('sentence_bert_config.json', files.sentence);
  await write('config.json', files.model);
  return folder;
}

/** Ids of words in the definition of these tests, and of what is not in it. */
const ids = { unknown: 1, cls: 2, sep: 3, hello: 4, world: 5 } as const;

async function idsOf(text: string, files: Files): Promise<number[]> {
  const tokenizer = await loadQuietly(await folderWith(wordPiece(bertTemplate), files), 16);
  const [tokenized] = await tokenizer.tokenize([text]);
  return [...(tokenized?.ids.slice(1, -1) ?? [])];
}

describe('the settings of a tokenizer of the BERT class', () => {
  const bert = { tokenizer_class: 'BertTokenizer' };

  it('win where they contradict the definition', async () => {
    expect(await idsOf('Hello', { tokenizer: { ...bert, do_lower_case: true } })).toEqual([ids.hello]);
    expect(await idsOf('Hello', { tokenizer: { ...bert, do_lower_case: false } })).toEqual([ids.unknown]);
    expect(await idsOf('h\u00e9llo', { tokenizer: bert })).toEqual([ids.hello]);
    expect(await idsOf('h\u00e9llo', { tokenizer: { ...bert, strip_accents: false } })).toEqual([ids.unknown]);
    expect(await idsOf('\u4f60\u597d', { tokenizer: bert })).toHaveLength(2);
    expect(await idsOf('\u4f60\u597d', { tokenizer: { ...bert, tokenize_chinese_chars: false } })).toHaveLength(1);
  });

  it('are those of the class by the family of the model, where no class is named', async () => {
    const tokenizer = { do_lower_case: false };
    expect(await idsOf('Hello', { tokenizer, model: { model_type: 'bert' } })).toEqual([ids.unknown]);
    expect(await idsOf('Hello', { tokenizer, model: { model_type: 'roberta' } })).toEqual([ids.hello]);
  });

  it('count nothing for another class', async () => {
    const tokenizer = { tokenizer_class: 'PreTrainedTokenizerFast', do_lower_case: false };
    expect(await idsOf('Hello', { tokenizer })).toEqual([ids.hello]);
  });

  it('count nothing where the definition has another normaliser', async () => {
    const definition = { ...wordPiece(bertTemplate), normalizer: { type: 'Lowercase' } };
    const folder = await folderWith(definition, { tokenizer: { ...bert, do_lower_case: false } });
    const [found] = await (await openReferenceLibrary(folder)).encodeBatch(['Hello']);
    expect(Array.from(found ?? [])).toEqual([ids.hello]);
  });
});

describe('do_lower_case of sentence-transformers', () => {
  const cased = { tokenizer: { tokenizer_class: 'BertTokenizer', do_lower_case: false } };

  it('lower-cases all but special tokens, whatever the tokenizer does', async () => {
    expect(await idsOf('HELLO', cased)).toEqual([ids.unknown]);
    const sentence = { do_lower_case: true };
    expect(await idsOf('HELLO [SEP] World', { ...cased, sentence })).toEqual([ids.hello, ids.sep, ids.world]);
  });

  it.skipIf(!isFallbackInstalled())('is heeded by the tokenizer of transformers.js, too', async () => {
    for (const sentence of [{}, { do_lower_case: true }]) {
      const folder = await folderWith(wordPiece(bertTemplate), { ...cased, sentence });
      const [found, expected] = await Promise.all(
        [openTransformersJsLibrary(folder), openReferenceLibrary(folder)].map(async (library) =>
          (await library).encodeBatch(['HELLO World']),
        ),
      );
      expect(Array.from(found?.[0] ?? [])).toEqual(Array.from(expected?.[0] ?? []));
    }
  });
});

function isFallbackInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve('@huggingface/tokenizers');
    return true;
  } catch {
    return false;
  }
}

describe('truncation_side "left"', () => {
  const left = { tokenizer: { truncation_side: 'left' } };

  it('keeps the end of a text and of a passage, special tokens where they were', async () => {
    const tokenizer = await loadQuietly(await folderWith(wordPiece(bertTemplate), left), 5);
    const [single] = await tokenizer.tokenize(['a b hello world hello']);
    expect(single).toMatchObject({ isTruncated: true, totalTokens: 7 });
    expect([...(single?.ids ?? [])]).toEqual([ids.cls, ids.hello, ids.world, ids.hello, ids.sep]);
    const [pair] = await tokenizer.tokenizePairs('hello', ['hello world']);
    expect([...(pair?.ids ?? [])]).toEqual([ids.cls, ids.hello, ids.sep, ids.world, ids.sep]);
  });

  it('is taken from the definition where the settings do not say', async () => {
    const truncation = { direction: 'Left', max_length: 4, strategy: 'LongestFirst', stride: 0 };
    const definition = { ...wordPiece(bertTemplate), truncation };
    expect((await readTokenizerSettings(await folderWith(definition, {}))).keptSide).toBe('end');
    const right = { tokenizer: { truncation_side: 'right' } };
    expect((await readTokenizerSettings(await folderWith(definition, right))).keptSide).toBe('start');
  });

  it('a long text that was cut in characters keeps the last ids of the whole text', async () => {
    for (const definition of [byteLevelRoberta(), wordPiece(bertTemplate)]) {
      const folder = await folderWith(definition, left);
      const [tokenizer, library] = [await loadQuietly(folder, 100), await openReferenceLibrary(folder)];
      await fc.assert(
        fc.asyncProperty(longText, async (text) => {
          const [whole = []] = await library.encodeBatch([text.toWellFormed()]);
          const [result] = await tokenizer.tokenize([text]);
          expect([...(result?.ids.slice(1, -1) ?? [])]).toEqual(Array.from(whole).slice(-98));
        }),
        { numRuns: 40 },
      );
    }
  }, 120_000);
});

describe('the inputs that a tokenizer names', () => {
  it('without token_type_ids every token has segment 0, whatever the template says', async () => {
    const load = async (names: readonly string[]) =>
      loadQuietly(await folderWith(wordPiece(bertTemplate), { tokenizer: { model_input_names: names } }), 16);
    const [plain] = await (await load(['input_ids', 'attention_mask'])).tokenizePairs('hello', ['world']);
    expect(plain?.typeIds).toBeNull();
    const [typed] = await (await load(['input_ids', 'token_type_ids'])).tokenizePairs('hello', ['world']);
    expect([...(typed?.typeIds ?? [])]).toEqual([0, 0, 0, 1, 1]);
  });
});

describe('tokens that are marked special', () => {
  it('behind all others are no part of what ordinary text gives', async () => {
    const added = { single_word: false, lstrip: false, rstrip: false, normalized: false };
    const tokens = [
      { ...added, id: 18, content: 'plain', special: false },
      { ...added, id: 19, content: '<image>', special: true },
    ];
    const definition = wordPiece(bertTemplate, tokens);
    const end = async (files: Files) => (await loadQuietly(await folderWith(definition, files), 16)).ordinaryIdEnd;
    expect(await end({})).toBe(20);
    const added_tokens_decoder = { 18: { special: false }, 19: { special: true } };
    expect(await end({ tokenizer: { added_tokens_decoder } })).toBe(19);
  });
});

describe('files that cannot be read', () => {
  it('are named in one line with what is wrong', async () => {
    const folder = await folderWith(wordPiece(bertTemplate), {});
    const path = join(folder, 'tokenizer.json');
    await writeFile(path, '{');
    await expect(loadQuietly(folder, 16)).rejects.toMatchObject({
      problems: [expect.stringMatching(/tokenizer\.json: defines no tokenizer: EOF while parsing/u)],
    });
    await rm(path);
    await expect(loadQuietly(folder, 16)).rejects.toMatchObject({ problems: [`${path}: is missing`] });
  });

  it('settings that are not JSON are named', async () => {
    const folder = await folderWith(wordPiece(bertTemplate), {});
    await writeFile(join(folder, 'tokenizer_config.json'), '[');
    await expect(readTokenizerSettings(folder)).rejects.toThrow('tokenizer_config.json: is not JSON');
  });
});
