/** Owns the list of services whose clients can call this server. */
import { cohereFamily } from './cohere.ts';
import type { CompatFamily } from './family.ts';
import { jinaFamily } from './jina.ts';
import { createOpenaiFamily, type TokenIdRule } from './openai.ts';
import { teiFamily } from './tei.ts';

/** What the operator decides for all of them. */
export interface CompatSettings {
  readonly openaiTokenIds: TokenIdRule;
}

/** Every family; where several have a path, the first one speaks for a request whose body nobody has read. */
export const createFamilies = ({ openaiTokenIds }: CompatSettings): readonly CompatFamily[] => [
  createOpenaiFamily(openaiTokenIds),
  cohereFamily,
  jinaFamily,
  teiFamily,
];
