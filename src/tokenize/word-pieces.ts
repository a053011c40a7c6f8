/** Owns BERT's word pieces of ordinary ASCII text, found on the thread that serves: there is nothing to wait for. */

/** The parts of a tokenizer's definition that decide. */
export interface WordPieceDefinition {
  readonly normalizer?: { readonly type?: unknown; readonly clean_text?: unknown; readonly lowercase?: unknown } | null;
  readonly pre_tokenizer?: { readonly type?: unknown } | null;
  readonly added_tokens?: readonly { readonly content?: unknown }[];
  readonly model?: {
    readonly type?: unknown;
    readonly vocab?: Readonly<Record<string, number>>;
    readonly unk_token?: unknown;
    readonly continuing_subword_prefix?: unknown;
    readonly max_input_chars_per_word?: unknown;
  };
}

/** The ids of a text without special tokens; null where the text is not so ordinary that they are certain. */
export type EncodeWordPieces = (text: string) => number[] | null;

/** Longest text that is looked at: about half a millisecond. @unit characters */
const maxCharacters = 16_384;

interface Vocabulary {
  readonly words: ReadonlyMap<string, number>;
  /** Pieces that go on within a word, without their prefix. */
  readonly continuations: ReadonlyMap<string, number>;
  readonly unknownId: number;
  readonly maxWordCharacters: number;
  readonly maxPieceCharacters: number;
}

/** Added tokens are found before anything else; where one could begin, the library has to look. */
const addedTokenStarts = new Set(['[', '<']);

/**
 * An encoder for a definition that is BERT's, or null for any other.
 * @source tokenizers, `BertNormalizer`, `BertPreTokenizer`, `WordPiece`
 */
export function createWordPieces(definition: WordPieceDefinition): EncodeWordPieces | null {
  const { normalizer, pre_tokenizer: preTokenizer, added_tokens: added = [] } = definition;
  const isBert = normalizer?.type === 'BertNormalizer' && normalizer.clean_text === true;
  if (!isBert || preTokenizer?.type !== 'BertPreTokenizer') return null;
  const isExpected = ({ content }: { readonly content?: unknown }) =>
    typeof content === 'string' && addedTokenStarts.has(content.charAt(0));
  if (!added.every(isExpected)) return null;
  const vocabulary = vocabularyOf(definition);
  if (vocabulary === null) return null;
  const isLower = normalizer.lowercase === true;
  return (text) => {
    if (text.length > maxCharacters) return null;
    const cased = isLower ? text.toLowerCase() : text;
    // Characters beyond ASCII may become several. Read before the loop, it also keeps V8 from lowering the whole text
    // again for each of its words, which took eight times as long once the code was optimised.
    return cased.length === text.length ? encode(cased, text, vocabulary) : null;
  };
}

function vocabularyOf({ model }: WordPieceDefinition): Vocabulary | null {
  if (model?.type !== 'WordPiece' || model.vocab === undefined) return null;
  const { unk_token: unknown, continuing_subword_prefix: prefix, max_input_chars_per_word: maxWord } = model;
  if (typeof unknown !== 'string' || typeof prefix !== 'string' || prefix === '') return null;
  const unknownId = model.vocab[unknown];
  if (unknownId === undefined || typeof maxWord !== 'number') return null;
  const words = new Map(Object.entries(model.vocab));
  const continuations = new Map<string, number>();
  let longest = 1;
  for (const [word, id] of words) {
    if (word.startsWith(prefix)) continuations.set(word.slice(prefix.length), id);
    longest = Math.max(longest, word.length);
  }
  return { words, continuations, unknownId, maxWordCharacters: maxWord, maxPieceCharacters: longest };
}

const isSpace = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9;

const isPunctuation = (code: number): boolean =>
  (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) || code >= 123;

/** Neither beyond ASCII, nor a control character that would be removed, nor the start of an added token. */
const isOrdinary = (code: number): boolean => code < 127 && (code > 32 || isSpace(code)) && code !== 91 && code !== 60;

/** @param text in the case of the vocabulary; @param original as it came, whose characters are judged */
function encode(text: string, original: string, vocabulary: Vocabulary): number[] | null {
  const ids: number[] = [];
  let start = 0;
  for (let at = 0; at <= original.length; at += 1) {
    const code = at < original.length ? original.charCodeAt(at) : 32;
    if (!isOrdinary(code)) return null;
    const isMark = isPunctuation(code);
    if (!isMark && !isSpace(code)) continue;
    if (at > start) pushWord(ids, text.slice(start, at), vocabulary);
    if (isMark) ids.push(vocabulary.words.get(text.charAt(at)) ?? vocabulary.unknownId);
    start = at + 1;
  }
  return ids;
}

/** The longest piece first, then the longest of what is left; a word of which any part is unknown is unknown. */
function pushWord(ids: number[], word: string, vocabulary: Vocabulary): void {
  const { words, continuations, unknownId, maxWordCharacters, maxPieceCharacters } = vocabulary;
  if (word.length > maxWordCharacters) {
    ids.push(unknownId);
    return;
  }
  const count = ids.length;
  for (let start = 0; start < word.length;) {
    const known = start === 0 ? words : continuations;
    let end = Math.min(word.length, start + maxPieceCharacters);
    let id = known.get(word.slice(start, end));
    while (id === undefined && end > start + 1) {
      end -= 1;
      id = known.get(word.slice(start, end));
    }
    if (id === undefined) {
      ids.length = count;
      ids.push(unknownId);
      return;
    }
    ids.push(id);
    start = end;
  }
}
