/** Owns reading base64 where there is no Buffer. */

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** Value of each character code; 64 for those that have none. */
const values = new Uint8Array(128).fill(64);
for (let value = 0; value < alphabet.length; value++) values[alphabet.charCodeAt(value)] = value;

/**
 * The little-endian binary32 numbers of a padded text in the standard alphabet.
 * @throws RangeError where it is no such text
 */
export function decodeFloats(text: string): Float32Array {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const byteCount = (text.length / 4) * 3 - padding;
  if (text.length % 4 !== 0 || byteCount % 4 !== 0) throw new RangeError('no base64 of whole numbers');
  // Whole groups of three bytes are written: up to two lie beyond the end.
  const bytes = new Uint8Array(byteCount + padding);
  let seen = 0;
  let at = 0;
  for (let index = 0; index < text.length; index += 4) {
    const a = valueAt(text, index);
    const b = valueAt(text, index + 1);
    const isLast = index + 4 === text.length;
    const c = isLast && padding === 2 ? 0 : valueAt(text, index + 2);
    const d = isLast && padding > 0 ? 0 : valueAt(text, index + 3);
    seen |= a | b | c | d;
    bytes[at] = (a << 2) | (b >> 4);
    bytes[at + 1] = (b << 4) | (c >> 2);
    bytes[at + 2] = (c << 6) | d;
    at += 3;
  }
  if (seen >= 64) throw new RangeError('a character that is not of base64');
  // Every machine that runs a browser or Node is little-endian.
  return new Float32Array(bytes.buffer, 0, byteCount / 4);
}

const valueAt = (text: string, index: number): number => values[text.charCodeAt(index)] ?? 64;
