/** Owns how much of a very long text is tokenised: a part from one end that surely holds the tokens that are kept. */
/// <reference lib="es2024.string" />

/** The end of a text that is kept where it is too long. */
export type KeptSide = 'start' | 'end';

/** A text's code units in reading order, or from the last one on where its end is kept. */
interface CodeUnits {
  readonly length: number;
  charCodeAt(index: number): number;
}

const reversed = (text: string): CodeUnits => ({
  length: text.length,
  charCodeAt: (index) => text.charCodeAt(text.length - 1 - index),
});

const unitsFrom = (text: string, keptSide: KeptSide): CodeUnits => (keptSide === 'start' ? text : reversed(text));

/**
 * Tokens beyond those kept that a prefix must give. Cutting a text changes only the tokens of the word that is cut,
 * and a word of more than 100 characters is a single unknown token in WordPiece, so kept tokens stay those of the whole.
 * @unit tokens
 */
export const windowMarginTokens = 128;

/** The first prefix is taken for this multiple of the tokens needed, so that one attempt does for nearly every text. */
const firstReserve = 1.5;

/** A prefix that gave too few tokens nevertheless is taken for this many times more, again and again. */
const growthFactor = 4;

/**
 * Most tokens by which one attempt may grow: bounds the memory and the copying of ids where dense text follows sparse.
 * @unit tokens
 */
const maxGrowthTokens = 250_000;

/**
 * Characters by which one attempt may always grow, blanks for example; the library needs about 0.3 s for them.
 * Beyond, a prefix that gave too few tokens grows by no more than the factor, so that all attempts stay few.
 * @unit characters
 */
const maxGrowthCharacters = 1_048_576;

/**
 * How far beyond its end a prefix reaches for white space; a longer word is cut, which the margin makes harmless.
 * @unit characters
 */
const maxReachCharacters = 256;

/**
 * A word is taken for one token for each so many letters: the length from which WordPiece calls it unknown.
 * @unit characters
 */
const lettersPerToken = 100;

/** Characters that end a word in every tokenizer; others (form feed, zero-width space) do in some only. */
const isWhiteSpace = (unit: number): boolean =>
  unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09 || unit === 0x3000;

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/** `end`, or one more where it would fall between the halves of a surrogate pair, in whatever order they come. */
function outsidePair(text: string, end: number, keptSide: KeptSide): number {
  const place = keptSide === 'start' ? end : text.length - end;
  const isInside = isLowSurrogate(text.charCodeAt(place)) && isHighSurrogate(text.charCodeAt(place - 1));
  return isInside ? end + 1 : end;
}

/** Letters and digits of alphabets, which form words; ideographs, signs and halves of pairs count one by one. */
const isLetter = (unit: number): boolean =>
  (unit >= 0x61 && unit <= 0x7a) ||
  (unit >= 0x41 && unit <= 0x5a) ||
  (unit >= 0x30 && unit <= 0x39) ||
  (unit >= 0xc0 && unit < 0x2000);

/** The place after `start` by which the text has given about `tokens` tokens; at most `maxCharacters` further. */
function placeOfTokens(text: CodeUnits, start: number, tokens: number, maxCharacters: number): number {
  const limit = Math.min(text.length, start + maxCharacters);
  let estimate = 0;
  let letters = 0;
  let end = start;
  for (; end < limit && estimate < tokens; end++) {
    const unit = text.charCodeAt(end);
    if (isLetter(unit)) {
      if (letters % lettersPerToken === 0) estimate++;
      letters++;
    } else {
      letters = 0;
      if (!isWhiteSpace(unit)) estimate++;
    }
  }
  return end;
}

/** Whether two characters belong to one run: letters, white space, or the same character again and again. */
const isSameRun = (unit: number, other: number): boolean =>
  unit === other || (isLetter(unit) && isLetter(other)) || (isWhiteSpace(unit) && isWhiteSpace(other));

/**
 * Where the run ends that fills the last `minCharacters` of a prefix; `end` itself where it fills fewer.
 * @unit UTF-16 code units
 */
function runEndFrom(text: CodeUnits, end: number, minCharacters: number): number {
  const last = text.charCodeAt(end - 1);
  for (let place = end - minCharacters; place < end; place++) {
    if (place < 0 || !isSameRun(text.charCodeAt(place), last)) return end;
  }
  let runEnd = end;
  while (runEnd < text.length && isSameRun(text.charCodeAt(runEnd), last)) runEnd++;
  return runEnd;
}

/** The next white space, or where none is near any place between two characters. */
function cutFrom(text: string, start: number, keptSide: KeptSide): number {
  const units = unitsFrom(text, keptSide);
  const furthest = Math.min(start + maxReachCharacters, text.length);
  for (let end = start; end < furthest; end++) if (isWhiteSpace(units.charCodeAt(end))) return end;
  return furthest === text.length ? furthest : outsidePair(text, furthest, keptSide);
}

/**
 * Where the first window to tokenise ends, counted from the side that is kept; the text's length where all of it is.
 * @unit UTF-16 code units
 */
export function firstWindowEnd(text: string, maxIds: number, keptSide: KeptSide = 'start'): number {
  const tokens = Math.ceil((maxIds + windowMarginTokens) * firstReserve);
  return cutFrom(text, placeOfTokens(unitsFrom(text, keptSide), 0, tokens, maxGrowthCharacters), keptSide);
}

/**
 * Where the window ends that follows `attempts` (one or more) that gave too few tokens; always beyond `end`.
 * @unit UTF-16 code units
 */
export function nextWindowEnd(
  text: string,
  end: number,
  maxIds: number,
  attempts: number,
  keptSide: KeptSide = 'start',
): number {
  const units = unitsFrom(text, keptSide);
  const neededTokens = maxIds + windowMarginTokens;
  const tokens = Math.min(neededTokens * growthFactor ** attempts, Math.max(maxGrowthTokens, maxIds));
  const maxCharacters = Math.max(maxGrowthCharacters, end * (growthFactor - 1));
  // Each attempt tokenises the whole prefix again: a run known to give less than one token for each hundred
  // characters is passed in one attempt.
  const start = runEndFrom(units, end, neededTokens * lettersPerToken);
  return cutFrom(text, placeOfTokens(units, start, tokens, maxCharacters), keptSide);
}

/** Whether a window that gave `tokens` is the whole text or certainly holds the `maxIds` ids of the whole that are kept. */
export const isWindowEnough = (text: string, end: number, tokens: number, maxIds: number): boolean =>
  end === text.length || tokens > maxIds + windowMarginTokens;

/** The window as the library may see it: a lone half of a surrogate pair is U+FFFD, nothing else changes. */
export const windowText = (text: string, end: number, keptSide: KeptSide = 'start'): string =>
  (keptSide === 'start' ? text.slice(0, end) : text.slice(text.length - end)).toWellFormed();
