/** Owns where special tokens stand around a text or a pair: derived from the library's own answers, then applied. */
import type { TypedEncoding } from './library.ts';

/** Special tokens that stand together. */
export interface SpecialTokens {
  /** @shape [tokens] */
  readonly ids: readonly number[];
  /** @shape [tokens] */
  readonly typeIds: readonly number[];
}

/** What stands around one text. */
export interface SingleTemplate {
  readonly prefix: SpecialTokens;
  readonly textTypeId: number;
  readonly suffix: SpecialTokens;
}

/** What stands around and between two texts. */
export interface PairTemplate {
  readonly prefix: SpecialTokens;
  readonly firstTypeId: number;
  readonly middle: SpecialTokens;
  readonly secondTypeId: number;
  readonly suffix: SpecialTokens;
}

/** Both templates of a model. */
export interface Templates {
  readonly single: SingleTemplate;
  readonly pair: PairTemplate;
}

/** What a library answered for two short texts: alone without special tokens, then with them. */
export interface TemplateProbe {
  readonly first: readonly number[];
  readonly second: readonly number[];
  readonly single: TypedEncoding;
  readonly pair: TypedEncoding;
}

function positionsOf(part: readonly number[], whole: readonly number[]): number[] {
  const positions: number[] = [];
  for (let start = 0; start + part.length <= whole.length; start++) {
    if (part.every((id, index) => whole[start + index] === id)) positions.push(start);
  }
  return positions;
}

const specialTokensAt = (encoding: TypedEncoding, start: number, end: number): SpecialTokens => ({
  ids: encoding.ids.slice(start, end),
  typeIds: encoding.typeIds.slice(start, end),
});

/** The one type id of a stretch, or null where it has several. */
function typeIdAt(encoding: TypedEncoding, start: number, end: number): number | null {
  const typeId = encoding.typeIds[start];
  if (typeId === undefined) return null;
  return encoding.typeIds.slice(start, end).every((other) => other === typeId) ? typeId : null;
}

function deriveSingle({ first, single }: TemplateProbe): SingleTemplate | null {
  const [start, ...others] = positionsOf(first, single.ids);
  if (start === undefined || others.length > 0) return null;
  const end = start + first.length;
  const textTypeId = typeIdAt(single, start, end);
  if (textTypeId === null) return null;
  return {
    prefix: specialTokensAt(single, 0, start),
    textTypeId,
    suffix: specialTokensAt(single, end, single.ids.length),
  };
}

function derivePair({ first, second, pair }: TemplateProbe): PairTemplate | null {
  const firstStart = positionsOf(first, pair.ids)[0];
  const secondStart = positionsOf(second, pair.ids).at(-1);
  if (firstStart === undefined || secondStart === undefined) return null;
  const firstEnd = firstStart + first.length;
  const secondEnd = secondStart + second.length;
  const firstTypeId = typeIdAt(pair, firstStart, firstEnd);
  const secondTypeId = typeIdAt(pair, secondStart, secondEnd);
  if (firstEnd > secondStart || firstTypeId === null || secondTypeId === null) return null;
  return {
    prefix: specialTokensAt(pair, 0, firstStart),
    firstTypeId,
    middle: specialTokensAt(pair, firstEnd, secondStart),
    secondTypeId,
    suffix: specialTokensAt(pair, secondEnd, pair.ids.length),
  };
}

/** The templates that the probe shows, or null where its texts cannot be told from the special tokens. */
export function deriveTemplates(probe: TemplateProbe): Templates | null {
  if (probe.first.length === 0 || probe.second.length === 0) return null;
  const single = deriveSingle(probe);
  const pair = derivePair(probe);
  return single === null || pair === null ? null : { single, pair };
}

/**
 * Special tokens around a single text.
 * @unit tokens
 */
export const singleSpecialTokens = (template: SingleTemplate): number =>
  template.prefix.ids.length + template.suffix.ids.length;

/**
 * Special tokens around and between a pair.
 * @unit tokens
 */
export const pairSpecialTokens = (template: PairTemplate): number =>
  template.prefix.ids.length + template.middle.ids.length + template.suffix.ids.length;

/** The templates with segment 0 for every token. */
export function withoutTypeIds({ single, pair }: Templates): Templates {
  const plain = ({ ids }: SpecialTokens): SpecialTokens => ({ ids, typeIds: ids.map(() => 0) });
  return {
    single: { prefix: plain(single.prefix), textTypeId: 0, suffix: plain(single.suffix) },
    pair: {
      prefix: plain(pair.prefix),
      firstTypeId: 0,
      middle: plain(pair.middle),
      secondTypeId: 0,
      suffix: plain(pair.suffix),
    },
  };
}

/** Ids and segments, ready to run. */
export interface AssembledIds {
  /** @shape [tokens] */
  readonly ids: Int32Array;
  /** null means all zero. @shape [tokens] */
  readonly typeIds: Uint8Array | null;
}

interface Part {
  readonly ids: ArrayLike<number>;
  readonly typeIds: ArrayLike<number> | number;
}

function join(parts: readonly Part[]): AssembledIds {
  const tokens = parts.reduce((sum, part) => sum + part.ids.length, 0);
  const ids = new Int32Array(tokens);
  const typeIds = new Uint8Array(tokens);
  let position = 0;
  for (const part of parts) {
    ids.set(part.ids, position);
    if (typeof part.typeIds === 'number') typeIds.fill(part.typeIds, position, position + part.ids.length);
    else typeIds.set(part.typeIds, position);
    position += part.ids.length;
  }
  return { ids, typeIds: typeIds.some((typeId) => typeId !== 0) ? typeIds : null };
}

/** The text's ids between the model's special tokens. */
export function assembleSingle(template: SingleTemplate, text: ArrayLike<number>): AssembledIds {
  return join([template.prefix, { ids: text, typeIds: template.textTypeId }, template.suffix]);
}

/** Both texts' ids with the model's special tokens; segments come from the template, never from looking for ids. */
export function assemblePair(
  template: PairTemplate,
  first: ArrayLike<number>,
  second: ArrayLike<number>,
): AssembledIds {
  return join([
    template.prefix,
    { ids: first, typeIds: template.firstTypeId },
    template.middle,
    { ids: second, typeIds: template.secondTypeId },
    template.suffix,
  ]);
}
