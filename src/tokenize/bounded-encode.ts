/** Owns tokenising any number of texts of any length in bounded steps, so that neither time nor memory runs away. */
import type { TokenLibrary } from './library.ts';
import { cutIds } from './truncate.ts';
import type { CountedIds } from './truncate.ts';
import type { GiveBack, Turns } from './turns.ts';
import { firstWindowEnd, isWindowEnough, nextWindowEnd, windowMarginTokens, windowText } from './window.ts';
import type { KeptSide } from './window.ts';

/** Most texts that go to the library at once; copying their ids takes about 2 ms of the thread that serves. */
export const maxSliceTexts = 64;

/**
 * Characters after which a slice is closed; the library needs about 100 bytes for each while it works.
 * @unit characters
 */
export const maxSliceCharacters = 65_536;

/**
 * Windows longer than this are tokenised one at a time in the whole process.
 * @unit characters
 */
export const largeWindowCharacters = 262_144;

/** What a slice of the list is: positions `start` to `start + ends.length`, each text with the end of its window. */
export interface TextSlice {
  readonly start: number;
  /** @unit UTF-16 code units */
  readonly ends: readonly number[];
}

/** The list in slices bounded by texts and by characters, each at least one text; lazily, in order. */
export function* sliceTexts(
  texts: readonly string[],
  maxIds: number,
  keptSide: KeptSide = 'start',
): Generator<TextSlice> {
  let start = 0;
  let ends: number[] = [];
  let characters = 0;
  for (const [index, text] of texts.entries()) {
    const end = firstWindowEnd(text, maxIds, keptSide);
    if (ends.length === maxSliceTexts || (ends.length > 0 && characters + end > maxSliceCharacters)) {
      yield { start, ends };
      start = index;
      ends = [];
      characters = 0;
    }
    ends.push(end);
    characters += end;
  }
  if (ends.length > 0) yield { start, ends };
}

/** What is the same for all texts of a call. */
export interface EncodeContext {
  readonly library: TokenLibrary;
  /** The line for windows beyond `largeWindowCharacters`. */
  readonly turns: Turns;
  readonly signal: AbortSignal | undefined;
  /** What is kept of a text that is too long; without it, its start. */
  readonly keptSide?: KeptSide;
}

async function encode(context: EncodeContext, windows: readonly string[]): Promise<readonly ArrayLike<number>[]> {
  context.signal?.throwIfAborted();
  const isLarge = windows.some((text) => text.length > largeWindowCharacters);
  if (!isLarge) return untilAborted(context.library.encodeBatch(windows), context.signal);
  const giveBack = await context.turns.take(context.signal);
  // The library cannot be stopped: who aborts is told at once, and the turn ends when its memory is free again.
  return untilAborted(encodeHolding(context, windows, giveBack), context.signal);
}

async function encodeHolding({ library, signal }: EncodeContext, windows: readonly string[], giveBack: GiveBack) {
  try {
    // The signal may abort between the turn's arrival and this moment.
    signal?.throwIfAborted();
    return await library.encodeBatch(windows);
  } finally {
    giveBack();
  }
}

/**
 * What `work` gives, unless the signal aborts first; work that is left behind ends unheard.
 * @throws the signal's reason
 */
function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const abort = () => {
      reject(signal.reason as Error);
    };
    const settleBy = <Value>(settle: (value: Value) => void) => {
      return (value: Value) => {
        signal.removeEventListener('abort', abort);
        settle(value);
      };
    };
    signal.addEventListener('abort', abort, { once: true });
    work.then(settleBy(resolve), settleBy(reject));
  });
}

function count(
  { keptSide }: EncodeContext,
  text: string,
  end: number,
  ids: ArrayLike<number>,
  maxIds: number,
): CountedIds {
  const isTotalMinimum = end < text.length;
  // The last tokens may stem from a word that was cut in two: without them the count is a lower bound for certain.
  const totalTokens = isTotalMinimum ? ids.length - windowMarginTokens : ids.length;
  return { ids: cutIds(ids, maxIds, keptSide), totalTokens, isTotalMinimum };
}

/** Enlarges the window of a text that gave too few tokens until it gives enough or is the whole text. */
async function encodeGrowing(context: EncodeContext, text: string, firstEnd: number, maxIds: number) {
  let end = firstEnd;
  for (let attempts = 1; ; attempts++) {
    end = nextWindowEnd(text, end, maxIds, attempts, context.keptSide);
    const [ids = []] = await encode(context, [windowText(text, end, context.keptSide)]);
    if (isWindowEnough(text, end, ids.length, maxIds)) return count(context, text, end, ids, maxIds);
  }
}

/**
 * The first `maxIds` ids of each text without special tokens, or the last ones, in input order.
 * @throws the signal's reason, as soon as it aborts; overloaded
 */
export async function encodeBounded(
  context: EncodeContext,
  texts: readonly string[],
  maxIds: number,
): Promise<CountedIds[]> {
  const results: CountedIds[] = [];
  for (const { start, ends } of sliceTexts(texts, maxIds, context.keptSide)) {
    const windows = ends.map((end, offset) => windowText(texts[start + offset] ?? '', end, context.keptSide));
    const encoded = await encode(context, windows);
    for (const [offset, end] of ends.entries()) {
      const text = texts[start + offset] ?? '';
      const ids = encoded[offset] ?? [];
      results.push(
        isWindowEnough(text, end, ids.length, maxIds)
          ? count(context, text, end, ids, maxIds)
          : await encodeGrowing(context, text, end, maxIds),
      );
    }
  }
  return results;
}
