/** Owns the list of the models that are here: those in a models directory and those in the hub's cache. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readCatalogEntry } from './catalog.ts';
import { findVariants } from './graph-file.ts';
import type { GraphVariant } from './graph-variant.ts';
import { listSnapshots } from './hub/cache.ts';

/** One model that is here. */
export interface InventoryEntry {
  /** The name that a setting takes. */
  readonly modelId: string;
  readonly source: 'directory' | 'hub';
  /** Commit on the hub; null for a folder. */
  readonly commit: string | null;
  /** Branches and tags that were resolved to the commit. */
  readonly revisions: readonly string[];
  readonly folder: string;
  /** Of all its files. */
  readonly sizeBytes: number;
  readonly precisions: readonly GraphVariant['precision'][];
}

/** Size of everything in a folder; links count as what they lead to, dangling ones as nothing. */
async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  const sizes = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

type Found = Omit<InventoryEntry, 'sizeBytes' | 'precisions'>;

async function findFolders(modelsDir: string): Promise<Found[]> {
  const names = await readdir(modelsDir).catch(() => []);
  const found = await Promise.all(
    names.sort().map(async (name) => {
      const folder = join(modelsDir, name);
      const isModel = await stat(join(folder, 'config.json')).then(
        () => true,
        () => false,
      );
      return isModel ? [{ modelId: name, source: 'directory' as const, commit: null, revisions: [], folder }] : [];
    }),
  );
  return found.flat();
}

/** Every model in the models directory, then every commit of every model in the cache. */
export async function listModels(modelsDir: string, cacheDir: string): Promise<InventoryEntry[]> {
  const cached = await listSnapshots(cacheDir);
  const found: Found[] = [
    ...(await findFolders(modelsDir)),
    ...cached.map(({ id, ...snapshot }) => ({ modelId: id, source: 'hub' as const, ...snapshot })),
  ];
  return Promise.all(
    found.map(async (model) => {
      const { graphPath } = await readCatalogEntry(model.folder);
      const graphs = await findVariants(model.folder, graphPath, process.arch);
      const precisions = [...new Set(graphs.map(({ precision }) => precision))];
      return { ...model, sizeBytes: await folderBytes(model.folder), precisions };
    }),
  );
}
