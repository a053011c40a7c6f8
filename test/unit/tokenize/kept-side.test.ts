import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { TokenLibrary } from '../../../src/tokenize/library.ts';
import { plainForm } from '../../../src/tokenize/form.ts';
import { loadTokenizer } from '../../../src/tokenize/load.ts';
import { openReferenceLibrary } from '../../../src/tokenize/reference.ts';
import type { TextTokenizer } from '../../../src/tokenize/tokenizer.ts';
import type { KeptSide } from '../../../src/tokenize/window.ts';
import { loadMinilm, loadQuietly, longText, minilmFolder, openMinilm } from './minilm.ts';
import { byteLevelRoberta, writeModelFolder } from './tiny-tokenizers.ts';

const sides = ['start', 'end'] as const satisfies KeptSide[];
const [classToken, separator] = [101, 102];
const limit = 16;
const template = { prefix: '<', body: '{instruction}|{query}|{document}', suffix: '>', instruction: 'ask' };

let library: TokenLibrary;
let tokenizer: TextTokenizer;
beforeAll(async () => {
  library = await openMinilm();
  tokenizer = await loadMinilm(limit);
});

const allIds = async (text: string): Promise<number[]> => Array.from((await library.encodeBatch([text]))[0] ?? []);
const endOf = (ids: readonly number[], side: KeptSide, room: number): readonly number[] =>
  side === 'start' ? ids.slice(0, room) : ids.slice(Math.max(0, ids.length - room));
const formOf = (keptSide: KeptSide | null) => ({ ...plainForm, keptSide });

describe('the end of a long text that a call chooses to keep', () => {
  it.each(sides)('%s: the special tokens and the first or last ids of the whole text, whatever it is', async (side) => {
    await fc.assert(
      fc.asyncProperty(longText, async (text) => {
        const ids = await allIds(text.toWellFormed());
        const [found] = await tokenizer.tokenize([text], undefined, formOf(side));
        expect([...(found?.ids ?? [])]).toEqual([classToken, ...endOf(ids, side, limit - 2), separator]);
        expect(found?.isTruncated).toBe(ids.length > limit - 2);
        if (found?.isTotalMinimum !== true) expect(found?.totalTokens).toBe(ids.length + 2);
      }),
      { numRuns: 40 },
    );
  });

  it('is that of the call alone: the next one keeps what the model keeps', async () => {
    const text = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen';
    const [byModel] = await tokenizer.tokenize([text]);
    const [byCall] = await tokenizer.tokenize([text], undefined, formOf('end'));
    const [again] = await tokenizer.tokenize([text], undefined, formOf(null));
    expect(byCall?.ids).not.toEqual(byModel?.ids);
    expect(again).toEqual(byModel);
  });

  it.each(sides)('%s: passages of pairs keep it beside the whole query', async (side) => {
    const passage = 'alpha beta gamma delta epsilon zeta eta theta iota kappa lambda';
    const [query, ids] = [await allIds('which letter'), await allIds(passage)];
    const [pair, short] = await tokenizer.tokenizePairs('which letter', [passage, 'alpha'], undefined, undefined, {
      keptSide: side,
      maxTokens: null,
    });
    const room = limit - 3 - query.length;
    expect(ids.length).toBeGreaterThan(room);
    expect([...(pair?.ids ?? [])]).toEqual([classToken, ...query, separator, ...endOf(ids, side, room), separator]);
    expect([...(short?.ids ?? [])]).toEqual([classToken, ...query, separator, ...(await allIds('alpha')), separator]);
  });

  it('of a filled template: the query and the end of the passage stay, its start goes', async () => {
    const folder = await writeModelFolder(byteLevelRoberta());
    const roberta = await openReferenceLibrary(folder);
    const idsOf = async (text: string) => Array.from((await roberta.encodeBatch([text]))[0] ?? []);
    const filled = await loadQuietly(folder, 20);
    const passage = `${'x'.repeat(90)}${'y'.repeat(9)}`;
    const [cut, whole] = await filled.tokenizePairs('q', [passage, 'x'], undefined, template, {
      keptSide: 'end',
      maxTokens: null,
    });
    expect([...(cut?.ids ?? [])]).toEqual([
      ...(await idsOf(`<ask|q|${'x'.repeat(3)}${'y'.repeat(9)}`)),
      ...(await idsOf('>')),
    ]);
    expect(cut).toMatchObject({ isTruncated: true, totalTokens: 2 + 6 + 99 });
    expect([...(whole?.ids ?? [])]).toEqual([...(await idsOf('<ask|q|x')), ...(await idsOf('>'))]);
    expect(whole?.isTruncated).toBe(false);
  });

  it('of a filled template: a limit of the passage alone cuts that alone, at either end', async () => {
    const folder = await writeModelFolder(byteLevelRoberta());
    const roberta = await openReferenceLibrary(folder);
    const idsOf = async (text: string) => Array.from((await roberta.encodeBatch([text]))[0] ?? []);
    const filled = await loadQuietly(folder, 64);
    for (const [keptSide, kept] of [
      ['start', 'xx'],
      ['end', 'yy'],
    ] as const) {
      const [cut] = await filled.tokenizePairs('q', ['xxxyyy'], undefined, template, { keptSide, maxTokens: 2 });
      expect([...(cut?.ids ?? [])]).toEqual([...(await idsOf(`<ask|q|${kept}`)), ...(await idsOf('>'))]);
      expect(cut?.isTruncated).toBe(true);
    }
  });
});

describe('texts of megabytes', () => {
  it.each(
    sides.flatMap((side) => [
      [side, 'words', 'word, ', 10_485_760, 65_536] as const,
      [side, 'ideographs', '\u4e2d', 10_485_760, 65_536] as const,
      // They give no tokens, or one: all of it is looked at, in few attempts.
      [side, 'one word', 'x', 2_097_152, 4_194_304] as const,
      [side, 'blanks', ' ', 2_097_152, 4_194_304] as const,
    ]),
  )('keeping the %s, of %s: a bounded number of characters is tokenised', async (side, _, part, length, limitOf) => {
    let characters = 0;
    const counting = await loadTokenizer({
      modelFolder: minilmFolder,
      maxTokens: 256,
      warn: () => undefined,
      openReference: () =>
        Promise.resolve({
          ...library,
          encodeBatch(texts) {
            characters += texts.reduce((sum, text) => sum + text.length, 0);
            return library.encodeBatch(texts);
          },
        }),
    });
    characters = 0;
    const [found] = await counting.tokenize([part.repeat(length / part.length)], undefined, formOf(side));
    expect(found?.ids.length).toBeLessThanOrEqual(256);
    expect(characters).toBeLessThanOrEqual(limitOf);
  });
});
