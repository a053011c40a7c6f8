/** Owns the ids of single tokens, read from `tokenizer.json` without opening a tokenizer. */
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from './json-file.ts';

const fileSchema = z.object({
  added_tokens: z.array(z.object({ id: z.int().nonnegative(), content: z.string() })).default([]),
  model: z.object({
    // WordPiece and BPE map texts to ids; Unigram lists texts in the order of their ids.
    vocab: z.union([z.record(z.string(), z.int()), z.array(z.tuple([z.string(), z.number()]))]),
  }),
});

/**
 * The id of each token, null where the vocabulary lacks it.
 * @throws ConfigurationError
 */
export async function readTokenIds(folder: string, tokens: readonly string[]): Promise<(number | null)[]> {
  const { added_tokens: added, model } = await readJson(join(folder, 'tokenizer.json'), fileSchema);
  const { vocab } = model;
  const find = (token: string): number | null => {
    const special = added.find(({ content }) => content === token);
    if (special !== undefined) return special.id;
    if (!Array.isArray(vocab)) return Object.hasOwn(vocab, token) ? (vocab[token] ?? null) : null;
    const id = vocab.findIndex(([piece]) => piece === token);
    return id < 0 ? null : id;
  };
  return tokens.map(find);
}
