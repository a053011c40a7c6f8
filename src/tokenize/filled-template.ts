/** Owns the texts of generative rerankers: a template filled with a query and a passage between fixed beginnings and ends. */
import { encodeBounded, maxSliceTexts } from './bounded-encode.ts';
import type { EncodeContext } from './bounded-encode.ts';
import type { FilledTemplate, TokenizedText } from './tokenizer.ts';
import { checkQueryRoom } from './truncate.ts';
import type { CountedIds } from './truncate.ts';

type Place = 'instruction' | 'query' | 'document';

/** The template with its places filled, all at once: what is filled in is never taken for a place. */
const fill = (template: string, values: Readonly<Record<Place, string>>): string =>
  template.replace(/\{(instruction|query|document)\}/gu, (_, place: Place) => values[place]);

/** All of the text that is tokenised for a query and a passage, where neither is cut. */
export const fillTemplate = (template: FilledTemplate, query: string, document: string): string => {
  const { prefix, body, suffix, instruction } = template;
  return prefix + fill(body, { instruction, query, document }) + suffix;
};

function joinIds(parts: readonly Int32Array[]): Int32Array {
  const ids = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let position = 0;
  for (const part of parts) {
    ids.set(part, position);
    position += part.length;
  }
  return ids;
}

/** Those that were cut at their end become what stands before the passage, and then the end of the whole. */
async function withEnds(
  context: EncodeContext,
  bodies: readonly string[],
  counted: readonly CountedIds[],
  head: Int32Array,
  room: number,
): Promise<CountedIds[]> {
  const isCut = ({ ids, totalTokens }: CountedIds): boolean => totalTokens > ids.length;
  const cutBodies = bodies.filter((_, index) => counted[index] !== undefined && isCut(counted[index]));
  const ends = (await encodeBounded({ ...context, keptSide: 'end' }, cutBodies, room - head.length)).values();
  return counted.map((text) => {
    const end = isCut(text) ? ends.next().value : undefined;
    return end === undefined ? text : { ...text, ids: joinIds([head, end.ids]) };
  });
}

/** Most tokens of the whole, and of a passage in it; null: as many as there is room for. */
export interface FilledLimits {
  readonly maxTokens: number;
  readonly maxPassageTokens: number | null;
}

/**
 * The query with each passage in the template, cut at the end of the passage, or at its start where the context keeps
 * ends. The query is tokenised with each passage again: tokens may reach over the places' borders.
 * @throws invalidParams, field `query`, where what stands before the passage leaves no room for a token of it
 * @source Qwen3-Reranker, model card
 */
export async function tokenizeFilled(
  givenContext: EncodeContext,
  template: FilledTemplate,
  { maxTokens, maxPassageTokens }: FilledLimits,
  query: string,
  passages: readonly string[],
): Promise<TokenizedText[]> {
  const context: EncodeContext = { ...givenContext, keptSide: 'start' };
  const { instruction } = template;
  const [head = ''] = template.body.split('{document}', 1);
  const before = (text: string): string => fill(head, { instruction, query: text, document: '' });
  const [prefix, suffix] = await encodeBounded(context, [template.prefix, template.suffix], maxTokens);
  if (prefix === undefined || suffix === undefined) throw new Error('a library gives ids for each text');
  const fixedTokens = prefix.totalTokens + suffix.totalTokens;
  const room = Math.max(0, maxTokens - fixedTokens);
  const [withQuery, withoutQuery] = await encodeBounded(context, [before(query), before('')], room);
  if (withQuery === undefined || withoutQuery === undefined) throw new Error('a library gives ids for each text');
  // What stands behind the passage is cut with its end, as it is at the model's limit.
  const bodyRoom = Math.min(room, withQuery.totalTokens + (maxPassageTokens ?? room));
  const ownTokens = withoutQuery.totalTokens;
  checkQueryRoom({ ...withQuery, totalTokens: withQuery.totalTokens - ownTokens }, room - ownTokens - 1);
  const assemble = ({ ids, totalTokens, isTotalMinimum }: CountedIds): TokenizedText => ({
    ids: joinIds([prefix.ids, ids, suffix.ids]),
    typeIds: null,
    isTruncated: totalTokens > ids.length,
    totalTokens: totalTokens + fixedTokens,
    isTotalMinimum,
  });
  const results: TokenizedText[] = [];
  // In slices, so that a long query is never held once for each passage.
  for (let start = 0; start < passages.length; start += maxSliceTexts) {
    const bodies = passages
      .slice(start, start + maxSliceTexts)
      .map((document) => fill(template.body, { instruction, query, document }));
    const counted = await encodeBounded(context, bodies, bodyRoom);
    const cut =
      givenContext.keptSide === 'end' ? await withEnds(context, bodies, counted, withQuery.ids, bodyRoom) : counted;
    results.push(...cut.map(assemble));
  }
  return results;
}
