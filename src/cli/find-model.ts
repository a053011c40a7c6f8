/** Owns where a command finds a model that is here already. */
import { stat } from 'node:fs/promises';
import { basename, isAbsolute, resolve } from 'node:path';
import { environment } from '../config/environment.ts';
import { readHubSettings } from '../config/hub.ts';
import { ConfigurationError } from '../errors.ts';
import { cachedRepository } from '../model/catalog.ts';
import { findInCache } from '../model/hub/cached-model.ts';
import { parseRepository } from '../model/hub/repository.ts';
import type { FolderOptions } from '../model/read-folder.ts';

/** A model's folder, and what is known of it besides. */
export interface FoundModel {
  readonly folder: string;
  readonly options: FolderOptions & { readonly modelId: string };
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (entry) => entry.isDirectory(),
    () => false,
  );

/**
 * The model that a name means: a folder, one in the models directory, or one in the hub's cache.
 * @throws ConfigurationError that says how to get it
 */
export async function findModel(name: string, modelsDir: string): Promise<FoundModel> {
  const places = isAbsolute(name) ? [name] : [...new Set([resolve(modelsDir, name), resolve(name)])];
  for (const folder of places) {
    if (await isFolder(folder)) return { folder, options: { modelId: cachedRepository(folder) ?? basename(folder) } };
  }
  const repository = parseRepository(name);
  const { cacheDir } = readHubSettings(environment);
  const cached = repository === null ? null : await findInCache(cacheDir, repository);
  if (cached !== null) {
    const { folder, ...options } = cached;
    return { folder, options: { ...options, modelId: cached.repository } };
  }
  const remedy =
    repository === null ? '' : `, and it is not in the cache ${cacheDir}: run "trivec models pull ${name}"`;
  throw new ConfigurationError([`there is no model folder ${places.join(' or ')}${remedy}`]);
}
