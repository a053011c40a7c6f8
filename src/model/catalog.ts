/** Owns `catalog.json`: the facts about the models beside it that their own files do not say. */
import { dirname, join, basename } from 'node:path';
import { z } from 'zod';
import { readOptionalJson } from './json-file.ts';

const graphFileSchema = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/u),
  bytes: z.int().positive(),
});

const entrySchema = z.strictObject({
  /** By path inside the model's folder. */
  graphFiles: z.record(z.string(), graphFileSchema).default({}),
  documentSkipTokens: z.array(z.string()).default([]),
  isMatryoshka: z.boolean().default(false),
  selfCheckFile: z.string().nullable().default(null),
});

const catalogSchema = z.record(z.string(), entrySchema);

/** What the catalogue says about one model. */
export type CatalogEntry = z.infer<typeof entrySchema>;

/** Name of the catalogue, in the folder that holds the model folders. */
export const catalogFile = 'catalog.json';

/**
 * The catalogue's entry for a model folder; the defaults where the catalogue or the entry is missing.
 * @throws ConfigurationError
 */
export async function readCatalogEntry(folder: string): Promise<CatalogEntry> {
  const catalog = await readOptionalJson(join(dirname(folder), catalogFile), catalogSchema);
  const name = basename(folder);
  return (catalog !== null && Object.hasOwn(catalog, name) ? catalog[name] : undefined) ?? entrySchema.parse({});
}
