/** Owns the length limit of a model: the smallest believable of all that its files state. */

import { join } from 'node:path';
import { z } from 'zod';
import { readOptionalJson } from './json-file.ts';

const sentenceSchema = z.object({ max_seq_length: z.unknown().optional() });

/** A stated limit above this is a placeholder, such as the 1e30 that tokenizer files carry. */
const maxBelievableTokens = 1_000_000;

/** Model families whose positions start behind the padding id, so that the first ones are never used. */
const offsetFamilies = new Set([
  'camembert',
  'data2vec-text',
  'ibert',
  'longformer',
  'mpnet',
  'roberta',
  'roberta-prelayernorm',
  'xlm-roberta',
  'xlm-roberta-xl',
  'xmod',
]);

/** A stated limit where it is believable, else null. */
export function believableTokens(value: unknown): number | null {
  const isBelievable = typeof value === 'number' && Number.isInteger(value) && value >= 1;
  return isBelievable && value <= maxBelievableTokens ? value : null;
}

/**
 * The limit in the `sentence_bert_config.json` of a folder; null where it states none that is believable.
 * @throws ConfigurationError
 */
export async function readSentenceLimit(folder: string): Promise<number | null> {
  const file = await readOptionalJson(join(folder, 'sentence_bert_config.json'), sentenceSchema);
  return believableTokens(file?.max_seq_length);
}

/** Positions that a text can use, where the model has a table of them. */
export function usablePositions(modelType: string, positions: unknown, padId: number): number | null {
  const stated = believableTokens(positions);
  return stated !== null && offsetFamilies.has(modelType) ? stated - padId - 1 : stated;
}

/**
 * The padding id behind which positions start; null for families that count from 0.
 * @source transformers, `create_position_ids_from_input_ids`
 */
export function positionPadId(modelType: string, padId: number): number | null {
  return offsetFamilies.has(modelType) ? padId : null;
}

/** The smallest of the believable limits; null where none is. */
export function smallestLimit(limits: readonly (number | null)[]): number | null {
  const known = limits.filter((limit) => limit !== null && limit >= 1) as number[];
  return known.length === 0 ? null : Math.min(...known);
}
