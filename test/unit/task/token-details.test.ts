import { EventEmitter, once } from 'node:events';
import { beforeAll, describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import {
  decodeIds,
  maxDecodedIds,
  maxDecodedListIds,
  maxDetailedCharacters,
  maxDetailedTotalCharacters,
  tokenizeDetails,
} from '../../../src/task/token-details.ts';
import type { TextTokenizer } from '../../../src/tokenize/tokenizer.ts';
import { loadMinilm } from '../tokenize/minilm.ts';
import { createServed, rejectionOf } from './fakes.ts';

let tokenizer: TextTokenizer;
beforeAll(async () => {
  tokenizer = await loadMinilm(16);
});
const serve = () => ({ ...createServed({ vocabularySize: 30_522 }), tokenizer });
const { signal } = new AbortController();

const detailsOf = (texts: readonly string[], end: AbortSignal = signal) => {
  const asked = { texts, hasSpecialTokens: true, field: 'texts' };
  return tokenizeDetails(serve(), asked, end, async (tokens) => tokens);
};
const decoded = (ids: readonly (readonly number[])[], skipsSpecialTokens = true, end: AbortSignal = signal) =>
  decodeIds(serve(), ids, skipsSpecialTokens, end);

describe('the tokens of texts', () => {
  it('are given for each text in order, however long it is for the model', async () => {
    const details = await detailsOf(['a map', 'sea '.repeat(1000)]);
    expect(details.map((tokens) => tokens.length)).toEqual([4, 1002]);
    expect(details[0]?.map(({ text }) => text)).toEqual(['[CLS]', 'a', 'map', '[SEP]']);
    expect(details[1]?.[1000]).toEqual({ id: 2712, text: 'sea', isSpecial: false, start: 3996, end: 3999 });
  });

  it('are refused where a text, or all of them, are too long', async () => {
    const most = 'a'.repeat(maxDetailedCharacters);
    const tooLong = await rejectionOf(detailsOf(['a', `${most}a`]));
    expect(tooLong).toMatchObject({
      errorName: 'invalidParams',
      data: { field: 'texts[1]', limit: maxDetailedCharacters, received: maxDetailedCharacters + 1 },
    });
    const texts = [...Array<string>(maxDetailedTotalCharacters / maxDetailedCharacters).fill(most), 'a'];
    const tooMany = await rejectionOf(detailsOf(texts));
    expect(tooMany).toMatchObject({ data: { field: 'texts[16]', limit: maxDetailedTotalCharacters } });
    expect(await detailsOf([most])).toHaveLength(1);
  });

  it('end with the reason of the abort', async () => {
    const reason = new ServiceError('cancelled', 'gone');
    expect(await rejectionOf(detailsOf(['a'], AbortSignal.abort(reason)))).toBe(reason);
  });

  it('are held for one large call at a time, until they are no longer used; a small one does not wait', async () => {
    const large = { texts: ['a'.repeat(5000)], hasSpecialTokens: true, field: 'texts' };
    const began: string[] = [];
    const end = new EventEmitter();
    const hasBegun = once(end, 'begun');
    const calls = [
      tokenizeDetails(serve(), large, signal, async () => {
        began.push('first');
        end.emit('begun');
        await once(end, 'used');
      }),
      tokenizeDetails(serve(), large, signal, async () => began.push('second')),
    ];
    await hasBegun;
    await tokenizeDetails(serve(), { ...large, texts: ['a'] }, signal, async () => began.push('small'));
    const gone = new AbortController();
    const waiting = detailsOf(large.texts, gone.signal);
    const reason = new ServiceError('cancelled', 'gone');
    gone.abort(reason);
    expect(await rejectionOf(waiting)).toBe(reason);
    expect(began).toEqual(['first', 'small']);
    end.emit('used');
    await Promise.all(calls);
    expect(began).toEqual(['first', 'small', 'second']);
  });
});

describe('the text of ids', () => {
  it('is given for each list in order', async () => {
    expect(await decoded([[101, 1037, 4949, 102], []])).toEqual(['a map', '']);
    expect(await decoded([[101, 1037, 102]], false)).toEqual(['[CLS] a [SEP]']);
  });

  it('is refused for ids that are none, and for too many', async () => {
    const wrong = await rejectionOf(decoded([[1037], [30_522]]));
    expect(wrong).toMatchObject({ errorName: 'invalidParams', data: { field: 'ids[1]', limit: 30_521 } });
    const most = Array<number>(maxDecodedListIds).fill(1037);
    const long = await rejectionOf(decoded([[1037], [...most, 1037]]));
    expect(long).toMatchObject({ data: { field: 'ids[1]', limit: maxDecodedListIds, received: most.length + 1 } });
    const many = await rejectionOf(decoded([[1037], ...Array<number[]>(maxDecodedIds / most.length).fill(most)]));
    expect(many).toMatchObject({ data: { field: 'ids[16]', limit: maxDecodedIds, received: maxDecodedIds + 1 } });
  });

  it('is the same however many lists there are, and ends with the reason of an abort', async () => {
    const lists = Array.from({ length: 40 }, (_, index) => Array<number>(4000).fill(1037 + index));
    const alone = await Promise.all(lists.map(async (list) => (await decoded([list]))[0]));
    expect(await decoded(lists)).toEqual(alone);
    const reason = new ServiceError('cancelled', 'gone');
    expect(await rejectionOf(decoded([[1037]], true, AbortSignal.abort(reason)))).toBe(reason);
  });
});
