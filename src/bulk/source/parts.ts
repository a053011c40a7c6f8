/** Owns cutting the texts of a call into what one request may hold, and putting the answers together again. */
import { jsonBytes } from '../../client/split.ts';
import type { Vectors } from '../row.ts';
import { nothing } from './nothing.ts';
import type { Embedded, VectorWish } from './source.ts';

/** What a request may hold. */
export interface PartLimits {
  readonly maxTexts: number;
  /** @unit bytes */
  readonly maxBytes: number;
}

/** Most bytes of one UTF-16 unit in JSON: an escape. */
const maxBytesPerUnit = 6;
/** Quotes and a comma. */
const bytesAround = 3;

/** The texts from a place on that one request holds; a text that is too large for any goes alone. */
export function partFrom(texts: readonly string[], start: number, { maxTexts, maxBytes }: PartLimits): string[] {
  const part = texts.slice(start, start + maxTexts);
  const mostBytes = part.reduce((sum, text) => sum + text.length * maxBytesPerUnit + bytesAround, 0);
  if (mostBytes <= maxBytes) return part;
  let bytes = 0;
  const end = part.findIndex((text, place) => (bytes += jsonBytes(text) + 1) > maxBytes && place > 0);
  return end === -1 ? part : part.slice(0, end);
}

/** The answers to neighbouring parts as one. */
export function joinParts(parts: readonly Embedded[], wish: VectorWish): Embedded {
  const [first] = parts;
  if (first === undefined) return nothing(wish);
  if (parts.length === 1) return first;
  const vectors = parts.map((part) => part.vectors).reduce(joinTwo);
  return { vectors, tokens: parts.reduce((sum, { tokens }) => sum + tokens, 0) };
}

function joinTwo(left: Vectors, right: Vectors): Vectors {
  if (left.kind === 'dense' && right.kind === 'dense') {
    return { kind: 'dense', vectors: [...left.vectors, ...right.vectors] };
  }
  if (left.kind === 'sparse' && right.kind === 'sparse') {
    return { kind: 'sparse', sparse: [...left.sparse, ...right.sparse] };
  }
  if (left.kind === 'multi' && right.kind === 'multi') {
    return { kind: 'multi', matrices: [...left.matrices, ...right.matrices] };
  }
  throw new Error('parts of one call have vectors of two kinds');
}
