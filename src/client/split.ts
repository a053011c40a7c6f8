/** Owns cutting a list into parts that the server takes in one request, and putting the results together again. */
import { refusal } from './error.ts';

/** Some neighbours of a list. */
export interface Part {
  /** Index of the first in the whole list. */
  readonly start: number;
  readonly texts: readonly string[];
}

/** What one request may hold. */
export interface PartLimits {
  readonly maxCount: number;
  /** Bytes of the texts as JSON, with a comma for each. @unit bytes */
  readonly maxBytes: number;
  /** Name of the list, for errors. */
  readonly field: string;
}

const encoder = new TextEncoder();
/** Most bytes of one UTF-16 unit in JSON: an escape. */
const maxBytesPerUnit = 6;
/** Quotes and a comma. */
const bytesAround = 3;

/** Size of a value in a request. @unit bytes */
export const jsonBytes = (value: unknown): number => encoder.encode(JSON.stringify(value)).length;

/**
 * Parts in order, as large as the limits allow.
 * @throws tooLarge for a text that fits into no request
 */
export function splitList(texts: readonly string[], limits: PartLimits): Part[] {
  const parts: Part[] = [];
  const { maxCount, maxBytes, field } = limits;
  const mostBytes = texts.reduce((sum, text) => sum + text.length * maxBytesPerUnit + bytesAround, 0);
  const bytesOf = mostBytes <= maxBytes ? () => 0 : (text: string) => jsonBytes(text) + 1;
  let start = 0;
  let bytes = 0;
  const cutBefore = (end: number) => {
    if (end > start) parts.push({ start, texts: texts.slice(start, end) });
    start = end;
    bytes = 0;
  };
  for (const [index, text] of texts.entries()) {
    const textBytes = bytesOf(text);
    if (textBytes > maxBytes) {
      const name = `${field}[${index}]`;
      const message = `${name}: takes ${textBytes} bytes, and a request has room for ${maxBytes}`;
      throw refusal('tooLarge', message, { field: name, limit: maxBytes, received: textBytes });
    }
    if (index - start >= maxCount || bytes + textBytes > maxBytes) cutBefore(index);
    bytes += textBytes;
  }
  cutBefore(texts.length);
  return parts;
}

/** A part as two of half its size. */
export function halve({ start, texts }: Part): readonly [Part, Part] {
  const middle = Math.ceil(texts.length / 2);
  return [
    { start, texts: texts.slice(0, middle) },
    { start: start + middle, texts: texts.slice(middle) },
  ];
}

/** What was ordered by itself: the scores of its texts, and their places in the whole list, best first. */
export interface OrderedPart {
  readonly scores: readonly number[];
  readonly order: readonly number[];
}

/**
 * The order of the whole list. A score depends on its own pair only, so this is the order that one request would have
 * given; ties go to the lower index.
 */
export function mergeOrders(parts: readonly OrderedPart[], scores: readonly number[], topN: number): number[] {
  const scoreOf = (index: number) => scores[index] ?? -Infinity;
  // Within a part the server's order stands: it may know of a difference that the score no longer shows.
  return parts
    .map(({ order }) => order)
    .reduce<readonly number[]>((merged, order) => mergeTwo(merged, order, scoreOf), [])
    .slice(0, topN);
}

function mergeTwo(left: readonly number[], right: readonly number[], scoreOf: (index: number) => number): number[] {
  const merged: number[] = [];
  let at = 0;
  for (const index of left) {
    for (let other = right[at]; other !== undefined && scoreOf(other) > scoreOf(index); other = right[++at]) {
      merged.push(other);
    }
    merged.push(index);
  }
  return [...merged, ...right.slice(at)];
}
