/** Owns what callers may ask of a model's tokenizer: the tokens of texts, and the text of tokens. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { invalidField } from '../errors.ts';
import type { TokenDetail } from '../tokenize/tokenizer.ts';
import { createTurns } from '../tokenize/turns.ts';
import type { ServedModel } from './context.ts';
import { checkGivenIds } from './given-inputs.ts';

export type { TokenDetail };

/**
 * Longest text whose tokens are shown: about 15,000 of them, whose places take 8 ms of the thread that serves; of
 * ideographs, each a token, 25 ms.
 * @unit characters
 */
export const maxDetailedCharacters = 65_536;

/** Most characters of all texts of a call: the answer takes about 20 bytes for each. @unit characters */
export const maxDetailedTotalCharacters = 1_048_576;

/** Most ids of one list that becomes text, which takes the library 100 ms of a thread. @unit tokens */
export const maxDecodedListIds = 65_536;

/** Most ids that become text in one call. @unit tokens */
export const maxDecodedIds = 1_048_576;

/** Characters or ids of a call that holds so little that it need not wait. */
const maxSmallSize = 4_096;

/** Most large calls that wait for others; the next one is answered `overloaded`. */
const maxWaitingCalls = 64;

/** One line for all models: what large calls hold, up to 200 MB each, is the memory of the process. */
const turns = createTurns(maxWaitingCalls);

/** Does work of a size: alone where it is large. */
async function inTurn<T>(size: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  if (size <= maxSmallSize) return work();
  const giveBack = await turns.take(signal);
  try {
    return await work();
  } finally {
    giveBack();
  }
}

/** Texts whose tokens are asked for. */
export interface TextsToDetail {
  readonly texts: readonly string[];
  readonly hasSpecialTokens: boolean;
  /** Name of the member that held the texts, for errors. */
  readonly field: string;
}

/** What elements are counted in, and how much one of them and all of them may have. */
interface SizeLimits {
  /** Word for the elements. */
  readonly elements: string;
  readonly unit: string;
  readonly each: number;
  readonly total: number;
}

const textLimits: SizeLimits = {
  elements: 'texts',
  unit: 'characters',
  each: maxDetailedCharacters,
  total: maxDetailedTotalCharacters,
};
const idLimits: SizeLimits = { elements: 'lists', unit: 'ids', each: maxDecodedListIds, total: maxDecodedIds };

/**
 * Gives the size of all elements.
 * @throws invalidParams, field of the first that is too long, or with which all are too much
 */
function checkSizes(
  elements: readonly { readonly length: number }[],
  fieldOf: (index: number) => string,
  limits: SizeLimits,
): number {
  let total = 0;
  for (const [index, { length }] of elements.entries()) {
    total += length;
    const isTooLong = length > limits.each;
    if (!isTooLong && total <= limits.total) continue;
    const [received, limit] = isTooLong ? [length, limits.each] : [total, limits.total];
    const what = isTooLong ? 'has' : `makes the ${limits.elements} so far`;
    throw invalidField(fieldOf(index), `${what} ${received} ${limits.unit}, the limit is ${limit}`, {
      limit,
      received,
    });
  }
  return total;
}

/**
 * What `use` makes of the tokens of each text, nothing cut, between the model's special tokens where asked for; prompts
 * are not added. Tokens of one large call at a time are held, until `use` has ended.
 * @throws invalidParams, field `<field>[i]`, where a text or all of them are too long; overloaded; the signal's reason
 */
export async function tokenizeDetails<T>(
  { tokenizer }: Pick<ServedModel, 'tokenizer'>,
  asked: TextsToDetail,
  signal: AbortSignal,
  use: (tokens: readonly TokenDetail[][]) => Promise<T>,
): Promise<T> {
  const { texts, field } = asked;
  const size = checkSizes(texts, (index) => `${field}[${index}]`, textLimits);
  return inTurn(size, signal, async () => {
    const details: TokenDetail[][] = [];
    for (const text of texts) {
      signal.throwIfAborted();
      // One after another: others have their turn in between.
      details.push(await tokenizer.detailsOf(text, asked.hasSpecialTokens));
    }
    return use(details);
  });
}

/**
 * The text of each list of ids, as the tokenizer puts tokens together.
 * @throws invalidParams, field `ids[i]`, where an id is no token of the model or there are too many; overloaded; the
 * signal's reason
 */
export async function decodeIds(
  served: Pick<ServedModel, 'manifest' | 'tokenizer'>,
  ids: readonly (readonly number[])[],
  skipsSpecialTokens: boolean,
  signal: AbortSignal,
): Promise<string[]> {
  const fieldOf = (index: number) => `ids[${index}]`;
  const total = checkSizes(ids, fieldOf, idLimits);
  checkGivenIds(served, ids, fieldOf);
  return inTurn(total, signal, async () => {
    const texts: string[] = [];
    for (const slice of slicesOf(ids)) {
      signal.throwIfAborted();
      texts.push(...(await served.tokenizer.decode(slice, skipsSpecialTokens)));
      await nextTurn();
    }
    return texts;
  });
}

/** The lists in slices of `maxDecodedListIds` ids or fewer. */
function* slicesOf(ids: readonly (readonly number[])[]): Generator<readonly (readonly number[])[]> {
  let start = 0;
  let size = 0;
  for (const [index, { length }] of ids.entries()) {
    if (index > start && size + length > maxDecodedListIds) {
      yield ids.slice(start, index);
      start = index;
      size = 0;
    }
    size += length;
  }
  yield ids.slice(start);
}
