import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { loadTokenizer } from '../../../src/tokenize/load.ts';
import { openReferenceLibrary } from '../../../src/tokenize/reference.ts';
import { openTransformersJsLibrary } from '../../../src/tokenize/transformers-js.ts';
import { startTokenizerProcess } from '../../../src/tokenize/transformers-js-process.ts';
import { loadMinilm, minilmFolder } from './minilm.ts';
import { bertTemplate, byteLevelRoberta, closingTemplate, wordPiece, writeModelFolder } from './tiny-tokenizers.ts';

const openWithoutAddon = (folder: string) =>
  openReferenceLibrary(folder, () =>
    Promise.reject(new Error("Cannot find module '@anush008/tokenizers-none'\nRequire stack:")),
  );

const quiet = { maxTokens: 256, warn: () => undefined };

function isFallbackInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve('@huggingface/tokenizers');
    return true;
  } catch {
    return false;
  }
}

describe('choice of the library', () => {
  it('the reference library is used where its addon loads', async () => {
    expect((await loadMinilm()).implementation).toBe('tokenizers');
  });

  it('without the addon the fallback is opened and one warning names the reason', async () => {
    const warnings: string[] = [];
    const tokenizer = await loadTokenizer({
      modelFolder: minilmFolder,
      maxTokens: 256,
      warn: (message) => warnings.push(message),
      openReference: openWithoutAddon,
      openFallback: async (folder) => ({ ...(await openReferenceLibrary(folder)), implementation: 'fallback' }),
    });
    expect(tokenizer.implementation).toBe('fallback');
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("Cannot find module '@anush008/tokenizers-none'");
  });

  it('a missing or broken tokenizer.json is a fault of the configuration, not a reason to fall back', async () => {
    const isFallbackOpened = { value: false };
    const openFallback = () => {
      isFallbackOpened.value = true;
      return openReferenceLibrary(minilmFolder);
    };
    const broken = await writeModelFolder({ version: '1.0' });
    for (const modelFolder of ['/no/such/model', broken]) {
      await expect(loadTokenizer({ ...quiet, modelFolder, openFallback })).rejects.toMatchObject({
        name: 'ConfigurationError',
        problems: [expect.stringContaining(modelFolder)],
      });
    }
    expect(isFallbackOpened.value).toBe(false);
  });

  it('answers that follow no template are refused at the start', async () => {
    const library = await openReferenceLibrary(minilmFolder);
    const openReference = () =>
      Promise.resolve({ ...library, encodeWithSpecialTokens: () => Promise.resolve({ ids: [1], typeIds: [0] }) });
    await expect(loadTokenizer({ ...quiet, modelFolder: minilmFolder, openReference })).rejects.toMatchObject({
      name: 'ConfigurationError',
    });
  });
});

const where = isFallbackInstalled() ? '' : ' (skipped: @huggingface/tokenizers is not installed)';

describe.skipIf(!isFallbackInstalled())(`the tokenizer of transformers.js in its own process${where}`, () => {
  const texts = ['hello world', '', 'a [SEP] b', 'Ünïcödé, 中文!', 'word '.repeat(5_000), 'hi \ud83d'];

  it('gives the same texts, pairs and ids of tokens as the reference on ordinary texts', async () => {
    const reference = await loadMinilm();
    const fallback = await loadTokenizer({ ...quiet, modelFolder: minilmFolder, openReference: openWithoutAddon });
    expect(fallback.implementation).toBe('transformers.js');
    expect(await fallback.tokenize(texts)).toEqual(await reference.tokenize(texts));
    expect(await fallback.tokenizePairs('hello', texts)).toEqual(await reference.tokenizePairs('hello', texts));
    expect(fallback.idsOf(['.', 'no such token'])).toEqual(reference.idsOf(['.', 'no such token']));
  });

  it('gives the same text of ids, and tokens without places, spelt as in the vocabulary', async () => {
    const reference = await loadMinilm();
    const fallback = await loadTokenizer({ ...quiet, modelFolder: minilmFolder, openReference: openWithoutAddon });
    const place = { isSpecial: false, start: null, end: null };
    expect(await fallback.detailsOf('tomING', true)).toEqual([
      { ...place, id: 101, text: '[CLS]', isSpecial: true },
      { ...place, id: 3419, text: 'tom' },
      { ...place, id: 2075, text: '##ing' },
      { ...place, id: 102, text: '[SEP]', isSpecial: true },
    ]);
    const ids = [[101, 2054, 2003, 3419, 2075, 1029, 102], []];
    for (const skips of [true, false])
      expect(await fallback.decode(ids, skips)).toEqual(await reference.decode(ids, skips));
    expect(fallback.idEnd).toBe(reference.idEnd);
  });

  it.each([
    ['BERT', wordPiece(bertTemplate)],
    ['a closing token only', wordPiece(closingTemplate)],
    ['RoBERTa', byteLevelRoberta()],
    [
      'RoBERTa in a sequence',
      {
        ...byteLevelRoberta(),
        post_processor: { type: 'Sequence', processors: [byteLevelRoberta()['post_processor']] },
      },
    ],
    ['no post-processor', wordPiece(null)],
    [
      'a byte-level post-processor only',
      {
        ...byteLevelRoberta(),
        post_processor: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
      },
    ],
  ])('derives the same templates for %s', async (_name, definition) => {
    const modelFolder = await writeModelFolder(definition);
    const reference = await loadTokenizer({ ...quiet, modelFolder });
    const fallback = await loadTokenizer({ ...quiet, modelFolder, openReference: openWithoutAddon });
    expect(await fallback.tokenize(['hello (b)', ''])).toEqual(await reference.tokenize(['hello (b)', '']));
    expect(await fallback.tokenizePairs('a', ['b', ''])).toEqual(await reference.tokenizePairs('a', ['b', '']));
  });

  it('a folder that cannot be read ends the start with the reason', async () => {
    await expect(startTokenizerProcess('/no/such/model')).rejects.toThrow('no such file');
  });

  it('calls of a process that dies fail, and the next call starts another', async () => {
    const child = await startTokenizerProcess(minilmFolder);
    const call = child.encodeBatch(['word '.repeat(400_000)]);
    process.kill(child.pid ?? 0, 'SIGKILL');
    await expect(call).rejects.toThrow('the tokenizer process ended');
    expect(child.isAlive()).toBe(false);

    const started: number[] = [];
    const library = await openTransformersJsLibrary(minilmFolder, async (folder) => {
      const next = await startTokenizerProcess(folder);
      started.push(next.pid ?? 0);
      return next;
    });
    const first = library.encodeBatch(['word '.repeat(400_000)]);
    process.kill(started[0] ?? 0, 'SIGKILL');
    await expect(first).rejects.toThrow('the tokenizer process ended');
    expect(await library.encodeBatch(['hello'])).toEqual([Int32Array.of(7592)]);
    expect(started).toHaveLength(2);
  });
});
