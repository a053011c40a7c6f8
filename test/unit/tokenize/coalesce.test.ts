import { describe, expect, it } from 'vitest';
import { encodeBounded } from '../../../src/tokenize/bounded-encode.ts';
import { coalesce, maxSharedCharacters, maxSharedTexts } from '../../../src/tokenize/coalesce.ts';
import type { TokenLibrary } from '../../../src/tokenize/library.ts';
import { createTurns } from '../../../src/tokenize/turns.ts';

interface Rig {
  readonly library: TokenLibrary;
  /** What the library was asked, one entry for each call. */
  readonly batches: (readonly string[])[];
  /** Ends the turn of the event loop. */
  endTurn(): void;
}

/** A library whose ids are the text's length, with turns that end when the test says so. */
function createRig(refuses: (texts: readonly string[]) => boolean = () => false): Rig {
  const batches: (readonly string[])[] = [];
  const due: (() => void)[] = [];
  const bare: TokenLibrary = {
    implementation: 'lengths',
    tokenCount: 1,
    async encodeBatch(texts) {
      batches.push(texts);
      await new Promise(setImmediate);
      if (refuses(texts)) throw new Error('refused');
      return texts.map((text) => [text.length]);
    },
    encodeWithSpecialTokens: () => Promise.resolve({ ids: [], typeIds: [] }),
    encodeWithPlaces: () => Promise.resolve({ ids: [], places: [] }),
    decodeBatch: () => Promise.resolve([]),
    tokenOf: () => null,
    idOf: () => null,
  };
  const library = coalesce(bare, (callback) => due.push(callback));
  return {
    library,
    batches,
    endTurn() {
      for (const callback of due.splice(0)) callback();
    },
  };
}

describe('texts that are asked for in one turn of the event loop', () => {
  it('are encoded by one call of the library, and each caller gets the ids of its own texts', async () => {
    const { library, batches, endTurn } = createRig();
    const asked = [library.encodeBatch(['a', 'bb']), library.encodeBatch(['ccc'])];
    expect(batches).toEqual([]);
    endTurn();
    expect(await Promise.all(asked)).toEqual([[[1], [2]], [[3]]]);
    expect(batches).toEqual([['a', 'bb', 'ccc']]);
  });

  it('are encoded once where they are equal, whoever asks', async () => {
    const { library, batches, endTurn } = createRig();
    const asked = [library.encodeBatch(['a', 'bb', 'a']), library.encodeBatch(['bb'])];
    endTurn();
    expect(await Promise.all(asked)).toEqual([[[1], [2], [1]], [[2]]]);
    expect(batches).toEqual([['a', 'bb']]);
  });

  it('are answered in one turn of the event loop', async () => {
    const { library, endTurn } = createRig();
    let turn = 0;
    const turnsOfAnswers: number[] = [];
    const count = () => {
      turn += 1;
      if (turnsOfAnswers.length < 3) setImmediate(count);
    };
    const asked = ['a', 'bb', 'a'].map((text) =>
      library.encodeBatch([text]).then(() => {
        turnsOfAnswers.push(turn);
      }),
    );
    endTurn();
    count();
    await Promise.all(asked);
    expect(new Set(turnsOfAnswers).size).toBe(1);
  });

  it('wait for no other turn: what is asked later is a call of its own', async () => {
    const { library, batches, endTurn } = createRig();
    const first = library.encodeBatch(['a']);
    endTurn();
    const second = library.encodeBatch(['bb']);
    endTurn();
    expect(await Promise.all([first, second])).toEqual([[[1]], [[2]]]);
    expect(batches).toEqual([['a'], ['bb']]);
  });

  it('never wait for long ones: beyond the bound in characters a caller has a call of its own', async () => {
    const { library, batches, endTurn } = createRig();
    const long = 'x'.repeat(maxSharedCharacters);
    const asked = [library.encodeBatch(['short']), library.encodeBatch([long]), library.encodeBatch(['brief'])];
    endTurn();
    await Promise.all(asked);
    expect(batches).toEqual([['short'], [long], ['brief']]);
  });

  it('share a call for no more than the bound in texts, and those of one caller are never parted', async () => {
    const { library, batches, endTurn } = createRig();
    const listOf = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}${index}`);
    const [most, rest] = [listOf('a', maxSharedTexts - 1), listOf('b', 2)];
    const asked = [library.encodeBatch(most), library.encodeBatch(rest)];
    endTurn();
    await Promise.all(asked);
    expect(batches).toEqual([most, rest]);
  });

  it('share a call however long they are, where they are the same', async () => {
    const { library, batches, endTurn } = createRig();
    const long = 'x'.repeat(10 * maxSharedCharacters);
    const asked = [library.encodeBatch([long]), library.encodeBatch(['brief']), library.encodeBatch([long])];
    endTurn();
    expect(await Promise.all(asked)).toEqual([[[long.length]], [[5]], [[long.length]]]);
    expect(batches).toEqual([[long], ['brief']]);
  });

  it('fail alone: where a shared call fails, each caller is answered by a call of its own', async () => {
    const { library, batches, endTurn } = createRig((texts) => texts.includes('bad'));
    const good = library.encodeBatch(['good']);
    const bad = library.encodeBatch(['bad']);
    endTurn();
    await expect(bad).rejects.toThrow('refused');
    expect(await good).toEqual([[4]]);
    expect(batches).toEqual([['good', 'bad'], ['good'], ['bad']]);
  });

  it('are answered although another caller of the same call leaves', async () => {
    const { library, batches, endTurn } = createRig();
    const leaving = new AbortController();
    const context = { library, turns: createTurns(1) };
    const left = encodeBounded({ ...context, signal: leaving.signal }, ['same'], 10);
    const stays = encodeBounded({ ...context, signal: new AbortController().signal }, ['same'], 10);
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    endTurn();
    expect((await stays).map(({ totalTokens }) => totalTokens)).toEqual([1]);
    expect(batches).toEqual([['same']]);
  });
});
