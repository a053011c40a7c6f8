/** Owns the tokenizer of one model: its library, its templates and its limit, put together. */
import { encodeBounded } from './bounded-encode.ts';
import type { TokenLibrary } from './library.ts';
import { assemblePair, assembleSingle, pairSpecialTokens, singleSpecialTokens } from './template.ts';
import type { AssembledIds, Templates } from './template.ts';
import type { TextTokenizer, TokenizedText } from './tokenizer.ts';
import { maxPassageTokens, maxQueryTokens, maxTextTokens } from './truncate.ts';
import type { CountedIds } from './truncate.ts';
import type { Turns } from './turns.ts';

/** What a tokenizer is made of. */
export interface TokenizerParts {
  readonly library: TokenLibrary;
  readonly templates: Templates;
  /** The model's limit, special tokens included. */
  readonly maxTokens: number;
  readonly turns: Turns;
}

function tokenizedText(assembled: AssembledIds, cut: CountedIds, otherTokens: number): TokenizedText {
  return {
    ...assembled,
    isTruncated: cut.totalTokens > cut.ids.length,
    totalTokens: cut.totalTokens + otherTokens,
    isTotalMinimum: cut.isTotalMinimum,
  };
}

/** A tokenizer that keeps nothing between calls. */
export function createTextTokenizer({ library, templates, maxTokens, turns }: TokenizerParts): TextTokenizer {
  const { single, pair } = templates;
  return {
    implementation: library.implementation,
    async tokenize(texts, signal) {
      const counted = await encodeBounded({ library, turns, signal }, texts, maxTextTokens(maxTokens, single));
      return counted.map((text) => tokenizedText(assembleSingle(single, text.ids), text, singleSpecialTokens(single)));
    },
    async tokenizePairs(query, passages, signal) {
      const context = { library, turns, signal };
      const [first] = await encodeBounded(context, [query], Math.max(0, maxQueryTokens(maxTokens, pair)));
      if (first === undefined) return [];
      const counted = await encodeBounded(context, passages, maxPassageTokens(maxTokens, pair, first));
      const otherTokens = pairSpecialTokens(pair) + first.totalTokens;
      return counted.map((passage) => tokenizedText(assemblePair(pair, first.ids, passage.ids), passage, otherTokens));
    },
    idsOf: (texts) => new Set(texts.map((text) => library.idOf(text)).filter((id) => id !== null)),
  };
}
