import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  encodeBounded,
  largeWindowCharacters,
  maxSliceCharacters,
  maxSliceTexts,
  sliceTexts,
} from '../../../src/tokenize/bounded-encode.ts';
import type { TokenLibrary } from '../../../src/tokenize/library.ts';
import { createTurns } from '../../../src/tokenize/turns.ts';

interface Observed {
  readonly library: TokenLibrary;
  readonly batches: (readonly string[])[];
  maxConcurrent: number;
}

/** One token for each letter `a`; answers on a later turn of the event loop and records what it was asked. */
function letterLibrary(onBatch: (batches: number) => void = () => undefined): Observed {
  let concurrent = 0;
  const observed: Observed = {
    batches: [],
    maxConcurrent: 0,
    library: {
      implementation: 'letters',
      tokenCount: 2,
      async encodeBatch(texts) {
        observed.batches.push(texts);
        observed.maxConcurrent = Math.max(observed.maxConcurrent, ++concurrent);
        await new Promise(setImmediate);
        concurrent--;
        onBatch(observed.batches.length);
        return texts.map((text) => Array<number>(text.split('a').length - 1).fill(1));
      },
      encodeWithSpecialTokens: () => Promise.resolve({ ids: [], typeIds: [] }),
      encodeWithPlaces: () => Promise.resolve({ ids: [], places: [] }),
      decodeBatch: () => Promise.resolve([]),
      tokenOf: () => null,
      idOf: () => null,
    },
  };
  return observed;
}

const context = (library: TokenLibrary, signal?: AbortSignal) => ({ library, turns: createTurns(10), signal });

describe('tokenising in bounded steps', () => {
  it('slices cover every text once, in order, within both bounds unless a single text is longer', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(90_000), { maxLength: 200 }), (lengths) => {
        const texts = lengths.map((length) => ' '.repeat(length));
        let next = 0;
        for (const { start, ends } of sliceTexts(texts, 254)) {
          expect(start).toBe(next);
          next += ends.length;
          expect(ends.length).toBeLessThanOrEqual(maxSliceTexts);
          if (ends.length > 1) expect(ends.reduce((sum, end) => sum + end, 0)).toBeLessThanOrEqual(maxSliceCharacters);
        }
        expect(next).toBe(texts.length);
      }),
      { numRuns: 30 },
    );
  });

  it('2,048 texts go to the library in slices', async () => {
    const { library, batches } = letterLibrary();
    const results = await encodeBounded(context(library), Array<string>(2_048).fill('aa'), 10);
    expect(batches.map((batch) => batch.length)).toEqual(Array(2_048 / maxSliceTexts).fill(maxSliceTexts));
    expect(results).toHaveLength(2_048);
  });

  it('an abort ends the call before the next slice with the reason of the signal', async () => {
    const controller = new AbortController();
    const reason = new Error('deadline');
    const { library, batches } = letterLibrary((count) => {
      if (count === 2) controller.abort(reason);
    });
    const texts = Array<string>(1_000).fill('a');
    await expect(encodeBounded(context(library, controller.signal), texts, 10)).rejects.toBe(reason);
    expect(batches).toHaveLength(2);
  });

  it('an abort is told at once while the library works on any text, and its own failure afterwards is unheard', async () => {
    const { library } = letterLibrary();
    let fail: (error: Error) => void = () => undefined;
    const stuck: TokenLibrary = { ...library, encodeBatch: () => new Promise((_, reject) => (fail = reject)) };
    const reason = new Error('deadline');
    for (const length of [1, largeWindowCharacters * 2]) {
      const controller = new AbortController();
      const call = encodeBounded(context(stuck, controller.signal), [' '.repeat(length)], 10);
      await new Promise(setImmediate);
      controller.abort(reason);
      await expect(call).rejects.toBe(reason);
      fail(new Error('too late'));
      await new Promise(setImmediate);
    }
  });

  it('an abort in the moment the turn arrives never starts the library and frees the turn', async () => {
    const { library, batches } = letterLibrary();
    const turns = createTurns(10);
    const giveBack = await turns.take();
    const controller = new AbortController();
    const blanks = ' '.repeat(largeWindowCharacters * 2);
    const call = encodeBounded({ library, turns, signal: controller.signal }, [blanks], 10);
    const reason = new Error('cancelled');
    giveBack();
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    expect(batches).toEqual([]);
    (await turns.take(AbortSignal.timeout(1_000)))();
  });

  it('a library that fails frees the turn', async () => {
    const { library } = letterLibrary();
    const failure = new Error('broken');
    const broken: TokenLibrary = { ...library, encodeBatch: () => Promise.reject(failure) };
    const shared = context(broken);
    const blanks = ' '.repeat(largeWindowCharacters * 2);
    await expect(encodeBounded(shared, [blanks], 10)).rejects.toBe(failure);
    await expect(encodeBounded(shared, [blanks], 10)).rejects.toBe(failure);
  });

  it('an abort in the middle of a very long text is told at once, and the next one waits for the library', async () => {
    let finish: () => void = () => undefined;
    const { library } = letterLibrary();
    const slow: TokenLibrary = {
      ...library,
      async encodeBatch(texts) {
        const isLarge = texts.some((text) => text.length > largeWindowCharacters);
        if (isLarge) await new Promise<void>((resolve) => (finish = resolve));
        return library.encodeBatch(texts);
      },
    };
    const turns = createTurns(10);
    const controller = new AbortController();
    const call = encodeBounded({ library: slow, turns, signal: controller.signal }, [' '.repeat(2_000_000)], 10);
    await expect.poll(() => finish.length, { interval: 1 }).toBe(1);
    const reason = new Error('deadline');
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    const isFree = { value: false };
    const next = turns.take().then(() => (isFree.value = true));
    await new Promise(setImmediate);
    expect(isFree.value).toBe(false);
    finish();
    await next;
  });

  it('a text that starts with signs that give no tokens is read until it gives tokens enough', async () => {
    const { library } = letterLibrary();
    const text = `${'!'.repeat(100_000)}${'a '.repeat(200_000)}`;
    const [result] = await encodeBounded(context(library), [text], 10);
    expect(result).toMatchObject({ ids: new Int32Array(10).fill(1), isTotalMinimum: true });
    expect(result?.totalTokens).toBeGreaterThan(10);
    expect(result?.totalTokens).toBeLessThanOrEqual(200_000);
  });

  it('a text that was read whole is counted exactly', async () => {
    const { library } = letterLibrary();
    const text = `${' '.repeat(100_000)}aaa`;
    expect(await encodeBounded(context(library), [text], 2)).toEqual([
      { ids: Int32Array.of(1, 1), totalTokens: 3, isTotalMinimum: false },
    ]);
  });

  it('large windows of several calls are tokenised one at a time, small ones side by side', async () => {
    const large = letterLibrary();
    const shared = context(large.library);
    const blanks = ' '.repeat(largeWindowCharacters + 1);
    await Promise.all([1, 2, 3].map(() => encodeBounded(shared, [blanks], largeWindowCharacters)));
    expect(large.maxConcurrent).toBe(1);
    const small = letterLibrary();
    await Promise.all([1, 2, 3].map(() => encodeBounded(context(small.library), ['a'], 10)));
    expect(small.maxConcurrent).toBe(3);
  });
});
