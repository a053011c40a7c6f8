/** Owns the module that says which tokens of a late-interaction model have no row. */
import { join } from 'node:path';
import { z } from 'zod';
import { refuse } from './gather.ts';
import { readOptionalJson } from './json-file.ts';

/** Tokens without rows, and the kinds of text in which they have none. */
export interface TokenMask {
  readonly skipTokens: readonly string[];
  readonly skipsInQueries: boolean;
  readonly skipsInDocuments: boolean;
}

const maskSchema = z.object({
  skiplist_words: z.array(z.string()).nullish(),
  skiplist_tasks: z.union([z.string().transform((task) => [task]), z.array(z.string())]).nullish(),
  keep_only_token_ids: z.array(z.int()).nullish(),
});

/**
 * What a `MultiVectorMask` leaves out; without a word on the kinds of text, of documents only.
 * @throws ConfigurationError where documents keep nothing but a list of tokens
 * @source sentence-transformers, `MultiVectorMask`
 */
export async function readTokenMask(folder: string): Promise<TokenMask> {
  const path = join(folder, 'config.json');
  const file = await readOptionalJson(path, maskSchema);
  const keepsOnly = (file?.keep_only_token_ids ?? []).length > 0;
  refuse(keepsOnly ? [`${path}: keep_only_token_ids is not supported`] : []);
  const tasks = file?.skiplist_tasks ?? ['document'];
  return {
    skipTokens: file?.skiplist_words ?? [],
    skipsInQueries: tasks.includes('query'),
    skipsInDocuments: tasks.includes('document'),
  };
}
