/** Owns texts of a wished length in tokens, made of the test collection's words. */
import type { TextTokenizer } from '../../src/tokenize/tokenizer.ts';
import { readDocuments } from '../../test/support/corpus.ts';

/** Texts, and their ids as the model reads them. */
export interface SizedTexts {
  readonly texts: readonly string[];
  readonly ids: readonly Int32Array[];
}

/** Tokens of an ordinary word of the collection, rounded up so that texts stay below the wished length. */
const tokensOfWord = 1.35;

/** `count` different texts of at most, and nearly, so many tokens. */
export async function textsOfTokens(tokenizer: TextTokenizer, tokens: number, count: number): Promise<SizedTexts> {
  const words = readDocuments().flatMap(({ text }) => text.split(/\s+/u));
  const size = Math.max(1, Math.floor((tokens - 2) / tokensOfWord));
  // The step has no common divisor with most sizes, so texts that wrap around differ.
  const texts = Array.from({ length: count }, (_, index) => {
    const start = (index * (size + 1)) % (words.length - size);
    return words.slice(start, start + size).join(' ');
  });
  const ids = (await tokenizer.tokenize(texts)).map((text) => text.ids);
  return { texts, ids };
}

/** @unit tokens */
export const tokensIn = (ids: readonly Int32Array[]): number => ids.reduce((sum, { length }) => sum + length, 0);
