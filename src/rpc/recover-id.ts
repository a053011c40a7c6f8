/** Owns finding the id of a request in the first bytes of a frame that will never be parsed. */
import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  isSpace,
  openBrace,
  openBracket,
  quote,
} from './json-characters.ts';

/**
 * How much of a frame is looked at; known clients put the id within the first 30 bytes.
 * @unit bytes
 */
export const maxIdSearchBytes = 4096;

const byteOrderMark = [0xef, 0xbb, 0xbf];

const skipSpace = (bytes: Uint8Array, from: number): number => {
  let at = from;
  while (isSpace(bytes[at])) at++;
  return at;
};

/** Index just after the string that starts at `from`, or -1 when the bytes end inside it. */
const endOfString = (bytes: Uint8Array, from: number): number => {
  for (let at = from + 1; at < bytes.length; at++) {
    if (bytes[at] === backslash) at++;
    else if (bytes[at] === quote) return at + 1;
  }
  return -1;
};

/** Index just after the list or object that starts at `from`; counts depth, because recursion could be driven too deep. */
const endOfNested = (bytes: Uint8Array, from: number): number => {
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      at = endOfString(bytes, at) - 1;
      if (at < 0) return -1;
    } else if (byte === openBrace || byte === openBracket) depth++;
    else if (byte === closeBrace || byte === closeBracket) {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
};

/** Index just after the number or word at `from`; -1 when the bytes end with it, since more of it may have followed. */
const endOfScalar = (bytes: Uint8Array, from: number): number => {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === comma || byte === closeBrace || byte === closeBracket || isSpace(byte)) return at;
  }
  return -1;
};

const endOfValue = (bytes: Uint8Array, from: number): number => {
  const byte = bytes[from];
  if (byte === quote) return endOfString(bytes, from);
  if (byte === openBrace || byte === openBracket) return endOfNested(bytes, from);
  return endOfScalar(bytes, from);
};

const parseToken = (token: Uint8Array): { text: string; value: unknown } | null => {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(token);
    return { text, value: JSON.parse(text) as unknown };
  } catch {
    return null;
  }
};

const rawIdOf = (token: Uint8Array): string | null => {
  const parsed = parseToken(token);
  return typeof parsed?.value === 'string' || typeof parsed?.value === 'number' ? parsed.text : null;
};

/**
 * The id of a single request as raw JSON text, read from the first bytes of its frame; null for a batch, for an id that
 * is neither string nor number, and when the bytes end before it. Of several ids the last one counts, as in `JSON.parse`.
 */
export function recoverId(frame: Uint8Array): string | null {
  const bytes = frame.subarray(0, maxIdSearchBytes);
  let at = skipSpace(bytes, byteOrderMark.every((byte, index) => bytes[index] === byte) ? byteOrderMark.length : 0);
  if (bytes[at] !== openBrace) return null;
  let rawId: string | null = null;
  do {
    const keyStart = skipSpace(bytes, at + 1);
    const keyEnd = bytes[keyStart] === quote ? endOfString(bytes, keyStart) : -1;
    if (keyEnd < 0) break;
    const separator = skipSpace(bytes, keyEnd);
    if (bytes[separator] !== colon) break;
    const valueStart = skipSpace(bytes, separator + 1);
    const valueEnd = endOfValue(bytes, valueStart);
    if (valueEnd < 0) break;
    if (parseToken(bytes.subarray(keyStart, keyEnd))?.value === 'id') {
      rawId = rawIdOf(bytes.subarray(valueStart, valueEnd));
    }
    at = skipSpace(bytes, valueEnd);
  } while (bytes[at] === comma);
  return rawId;
}
