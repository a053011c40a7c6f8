import { describe, expect, it } from 'vitest';
import type { TokenLibrary } from '../../../src/tokenize/library.ts';
import { loadTokenizer } from '../../../src/tokenize/load.ts';
import { openReferenceLibrary } from '../../../src/tokenize/reference.ts';
import { loadQuietly } from './minilm.ts';
import { bertTemplate, byteLevelRoberta, wordPiece, writeModelFolder } from './tiny-tokenizers.ts';

const template = { prefix: '<', body: '{instruction}|{query}|{document}', suffix: '>', instruction: 'ask' };

async function openRoberta(maxTokens: number) {
  const folder = await writeModelFolder(byteLevelRoberta());
  const library = await openReferenceLibrary(folder);
  const idsOf = async (text: string) => Array.from((await library.encodeBatch([text]))[0] ?? []);
  return { tokenizer: await loadQuietly(folder, maxTokens), idsOf };
}

describe('a filled template', () => {
  it('has no special tokens of its own and the ids of its three parts', async () => {
    const { tokenizer, idsOf } = await openRoberta(64);
    const [text] = await tokenizer.tokenizePairs('q', ['hello wo'], undefined, template);
    const parts = await Promise.all(['<', 'ask|q|hello wo', '>'].map(idsOf));
    expect([...(text?.ids ?? [])]).toEqual(parts.flat());
    expect(text).toMatchObject({ typeIds: null, isTruncated: false, totalTokens: parts.flat().length });
  });

  it('is cut at the end of the passage, and its end stays', async () => {
    const { tokenizer, idsOf } = await openRoberta(20);
    const [text] = await tokenizer.tokenizePairs('q', ['x'.repeat(99)], undefined, template);
    expect([...(text?.ids ?? [])]).toEqual([...(await idsOf(`<ask|q|${'x'.repeat(12)}`)), ...(await idsOf('>'))]);
    expect(text).toMatchObject({ isTruncated: true, totalTokens: 2 + 6 + 99 });
  });

  it('never takes what is filled in for a place', async () => {
    const { tokenizer, idsOf } = await openRoberta(99);
    const [text] = await tokenizer.tokenizePairs('{document}$&', ['{query}$1'], undefined, template);
    expect([...(text?.ids ?? [])].slice(1, -1)).toEqual(await idsOf('ask|{document}$&|{query}$1'));
  });

  it('whose query leaves no room for a passage is refused with the tokens of the query', async () => {
    const { tokenizer } = await openRoberta(16);
    // 16 less the two ends, less "ask||", less one token of the passage.
    await expect(tokenizer.tokenizePairs('y'.repeat(8), [''], undefined, template)).resolves.toHaveLength(1);
    await expect(tokenizer.tokenizePairs('y'.repeat(9), [''], undefined, template)).rejects.toMatchObject({
      errorName: 'invalidParams',
      data: { field: 'query', tokens: 9, limit: 8 },
    });
  });

  it('gives each of many passages its own place', async () => {
    const { tokenizer, idsOf } = await openRoberta(64);
    const passages = Array.from({ length: 150 }, (_, index) => `n${String(index)}`);
    const texts = await tokenizer.tokenizePairs('q', passages, undefined, template);
    expect(texts).toHaveLength(150);
    expect([...(texts[149]?.ids ?? [])].slice(1, -1)).toEqual(await idsOf('ask|q|n149'));
  });
});

describe('pairs', () => {
  it('tokenise the query once, however many passages there are', async () => {
    const modelFolder = await writeModelFolder(wordPiece(bertTemplate));
    const seen: string[] = [];
    const openReference = async (folder: string): Promise<TokenLibrary> => {
      const library = await openReferenceLibrary(folder);
      return {
        ...library,
        encodeBatch(texts) {
          seen.push(...texts);
          return library.encodeBatch(texts);
        },
      };
    };
    const tokenizer = await loadTokenizer({ modelFolder, maxTokens: 32, warn: () => undefined, openReference });
    seen.length = 0;
    const passages = Array.from({ length: 200 }, (_, index) => `över it ${index}`);
    await tokenizer.tokenizePairs('quick föx', passages);
    expect(seen.filter((text) => text === 'quick föx')).toHaveLength(1);
    expect(seen).toHaveLength(201);
  });
});
