/** Owns what the cache has of a named model, wherever its graphs come from. */
import { findCatalogEntry, plainEntry } from '../catalog.ts';
import { findVariants } from '../graph-file.ts';
import type { LocatedModel } from '../registry.ts';
import { findSnapshot } from './cache.ts';
import { graphSupply, missingDescription } from './completeness.ts';
import type { GraphNeed } from './completeness.ts';
import { defaultRevision } from './repository.ts';
import type { Repository } from './repository.ts';

/** What the cache has of a model; with it, what is missing to serve it. */
export interface CachedModel {
  readonly model: LocatedModel | null;
  /** Whether what is served must first be made from another precision. */
  readonly isConverted: boolean;
  /** null where nothing is, or where the cache has no such model. */
  readonly missing: string | null;
}

const lacks = (missing: string | null): CachedModel => ({ model: null, isConverted: false, missing });

/**
 * What the cache has of a model, and whether that can be served.
 * @throws ConfigurationError where a graph is damaged
 */
export async function findCached(cacheDir: string, repository: Repository, need: GraphNeed): Promise<CachedModel> {
  const folder = await findSnapshot(cacheDir, repository);
  if (folder === null) return lacks(null);
  const missing = await missingDescription(folder);
  if (missing !== null) return lacks(missing);
  const catalog = (await findCatalogEntry(repository.id)) ?? plainEntry;
  const { id } = repository;
  const own = await graphSupply(folder, need, catalog);
  if ('isConverted' in own) {
    return { model: { folder, graphFolder: folder, repository: id }, isConverted: own.isConverted, missing: null };
  }
  if (catalog.graphRepository === null) return lacks(own.missing);
  const other = { id: catalog.graphRepository, revision: defaultRevision };
  const graphFolder = await findSnapshot(cacheDir, other);
  if (graphFolder === null) return lacks(`the graphs of ${other.id}`);
  const supply = await graphSupply(graphFolder, need, catalog);
  if ('missing' in supply) return lacks(supply.missing);
  return { model: { folder, graphFolder, repository: id }, isConverted: supply.isConverted, missing: null };
}

/**
 * Gives the place of a model in the cache, whatever it lacks; null where the cache does not have it.
 */
export async function findInCache(cacheDir: string, repository: Repository): Promise<LocatedModel | null> {
  const folder = await findSnapshot(cacheDir, repository);
  if (folder === null) return null;
  const { graphRepository, graphPath } = (await findCatalogEntry(repository.id)) ?? plainEntry;
  const own = { folder, graphFolder: folder, repository: repository.id };
  if (graphRepository === null || (await findVariants(folder, graphPath, process.arch)).length > 0) return own;
  const other = await findSnapshot(cacheDir, { id: graphRepository, revision: defaultRevision });
  return other === null ? own : { ...own, graphFolder: other };
}
