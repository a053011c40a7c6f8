/** Owns `catalog.json`: the facts about known models that their own files do not say. */
import { basename, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { readOptionalJson } from './json-file.ts';
import { punctuation } from './token-row-rules.ts';

const graphFileSchema = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/u),
  bytes: z.int().positive(),
});

const skipTokensSchema = z
  .union([z.literal('punctuation'), z.array(z.string())])
  .transform((tokens): readonly string[] => (tokens === 'punctuation' ? punctuation : tokens));

const rowsSchema = z.strictObject({
  queryMarker: z.string().optional(),
  documentMarker: z.string().optional(),
  maxQueryTokens: z.int().positive().optional(),
  maxDocumentTokens: z.int().positive().optional(),
  expandsQueries: z.boolean().optional(),
  isExpansionAttended: z.boolean().optional(),
});

const entrySchema = z.strictObject({
  /** By path inside the model's folder. */
  graphFiles: z.record(z.string(), graphFileSchema).default({}),
  /** Repository of the graph files, where the model's own has none. */
  graphRepository: z.string().nullable().default(null),
  /** The float32 graph file, where its name is not one that is looked for. */
  graphPath: z.string().nullable().default(null),
  /** Whether the hub asks for an account that has accepted the model's terms. */
  isGated: z.boolean().default(false),
  documentSkipTokens: skipTokensSchema.optional(),
  isMatryoshka: z.boolean().default(false),
  matryoshkaDimensions: z.array(z.int().positive()).default([]),
  isCenteredBeforeCut: z.boolean().default(false),
  maxTokens: z.int().positive().nullable().default(null),
  prompts: z
    .strictObject({
      query: z.string().optional(),
      document: z.string().optional(),
      unspecified: z.string().optional(),
    })
    .default({}),
  /** Where the model has no `modules.json`: how rows become a vector. */
  pooling: z
    .array(z.enum(['cls', 'max', 'mean', 'meanSqrtLen', 'weightedMean', 'lastToken']))
    .min(1)
    .nullable()
    .default(null),
  isNormalized: z.boolean().default(true),
  rows: rowsSchema.default({}),
  /** The label that means "relevant", for classifiers with two. */
  positiveLabel: z.int().min(0).max(1).nullable().default(null),
  /** For generative rerankers. */
  yesNo: z
    .strictObject({
      yes: z.string(),
      no: z.string(),
      prefix: z.string(),
      body: z.string(),
      suffix: z.string(),
      instruction: z.string(),
    })
    .nullable()
    .default(null),
  selfCheckFile: z.string().nullable().default(null),
});

/** Form of the catalogue. */
export const catalogSchema = z.record(z.string(), entrySchema);

/** What the catalogue says about one model. */
export type CatalogEntry = z.infer<typeof entrySchema>;

/** Name of the catalogue, in the folder that holds the model folders. */
export const catalogFile = 'catalog.json';

/** The catalogue that comes with the package. */
export const bundledCatalogPath = fileURLToPath(new URL(`../../models/${catalogFile}`, import.meta.url));

/** What is known of a model that no catalogue lists. */
export const plainEntry: CatalogEntry = entrySchema.parse({});

/** The repository of a folder in the hub's cache; null for any other folder. */
export function cachedRepository(folder: string): string | null {
  const cached = folder.split(sep).findLast((part) => part.startsWith('models--'));
  return cached === undefined ? null : cached.slice('models--'.length).replace('--', '/');
}

/**
 * The repository that a folder is a copy of, by where it lies: `…/models--owner--name/snapshots/<commit>` in the
 * hub's cache, else `…/owner/name`.
 */
export function repositoryOf(folder: string): string {
  return cachedRepository(folder) ?? folder.split(sep).slice(-2).join('/');
}

/**
 * The entry for a repository id, whatever its upper and lower case; null where none is listed.
 * @throws ConfigurationError
 */
export async function findCatalogEntry(repository: string, path = bundledCatalogPath): Promise<CatalogEntry | null> {
  const catalog = (await readOptionalJson(path, catalogSchema)) ?? {};
  const key = Object.keys(catalog).find((name) => name.toLowerCase() === repository.toLowerCase());
  return key === undefined ? null : (catalog[key] ?? null);
}

/**
 * The entry for a model folder: the one of its name in the catalogue beside it, else the one of its repository in
 * the bundled one, else what is known of a model that nobody lists.
 * @throws ConfigurationError
 */
export async function readCatalogEntry(folder: string, repository = repositoryOf(folder)): Promise<CatalogEntry> {
  const beside = await findCatalogEntry(basename(folder), join(dirname(folder), catalogFile));
  return beside ?? (await findCatalogEntry(repository)) ?? plainEntry;
}
