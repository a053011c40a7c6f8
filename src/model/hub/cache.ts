/** Owns the layout of the cache that all tools around the hub share. */
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { randomUUID } from 'node:crypto';
import { fileErrorCode } from '../json-file.ts';
import type { HubFile } from './file-hash.ts';
import { isCommit, parseRepository } from './repository.ts';
import type { Repository } from './repository.ts';

/** Paths of one repository in the cache. */
export interface RepositoryPaths {
  readonly folder: string;
  readonly lock: string;
  blob(file: HubFile): string;
  /** The folder that looks like the repository at a commit. */
  snapshot(commit: string): string;
  ref(revision: string): string;
}

const prefix = 'models--';

/** Paths of a repository, whose name was checked when it was parsed. */
export function pathsOf(cacheDir: string, id: string): RepositoryPaths {
  const name = `${prefix}${id.replace('/', '--')}`;
  const folder = join(cacheDir, name);
  return {
    folder,
    lock: join(cacheDir, '.locks', name, 'trivec.lock'),
    blob: ({ hash }) => join(folder, 'blobs', hash),
    snapshot: (commit) => join(folder, 'snapshots', commit),
    ref: (revision) => join(folder, 'refs', ...revision.split('/')),
  };
}

async function orNull<Result>(step: Promise<Result>): Promise<Result | null> {
  try {
    return await step;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes(fileErrorCode(error))) return null;
    throw error;
  }
}

/** The recorded commit of a revision; null where none is. */
export async function readRecordedCommit(paths: RepositoryPaths, revision: string): Promise<string | null> {
  if (isCommit(revision)) return revision;
  const text = (await orNull(readFile(paths.ref(revision), 'utf8')))?.trim() ?? '';
  return isCommit(text) ? text : null;
}

/** The snapshot folder of a repository's revision; null where the cache has none. */
export async function findSnapshot(cacheDir: string, { id, revision }: Repository): Promise<string | null> {
  const paths = pathsOf(cacheDir, id);
  const commit = await readRecordedCommit(paths, revision);
  if (commit === null) return null;
  const folder = paths.snapshot(commit);
  return (await orNull(stat(folder)))?.isDirectory() === true ? folder : null;
}

/** Puts something under a final name in one step, whatever was there. */
async function replace(path: string, make: (temporaryPath: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const temporaryPath = `${path}.${randomUUID()}.tmp`;
  try {
    await make(temporaryPath);
    await rename(temporaryPath, path);
  } finally {
    await rm(temporaryPath, { force: true });
  }
}

/** Lets the snapshot's file be the blob: a relative link, or a copy where links are not allowed. */
export async function linkFile(paths: RepositoryPaths, commit: string, file: HubFile): Promise<void> {
  const path = join(paths.snapshot(commit), ...file.path.split('/'));
  const blobPath = paths.blob(file);
  await replace(path, async (temporaryPath) => {
    try {
      await symlink(relative(dirname(path), blobPath), temporaryPath);
    } catch (error) {
      if (!['EPERM', 'ENOSYS', 'ENOTSUP'].includes(fileErrorCode(error))) throw error;
      await copyFile(blobPath, temporaryPath);
    }
  });
}

/** Records the commit of a branch or tag. */
export async function recordCommit(paths: RepositoryPaths, revision: string, commit: string): Promise<void> {
  if (isCommit(revision)) return;
  await replace(paths.ref(revision), (temporaryPath) => writeFile(temporaryPath, commit));
}

/** One commit of one repository in the cache. */
export interface CachedSnapshot {
  readonly id: string;
  readonly commit: string;
  /** Branches and tags that were resolved to it. */
  readonly revisions: readonly string[];
  readonly folder: string;
}

async function readRefs(paths: RepositoryPaths): Promise<(readonly [string, string])[]> {
  const folder = join(paths.folder, 'refs');
  const entries = (await orNull(readdir(folder, { recursive: true, withFileTypes: true }))) ?? [];
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(
    files.map(
      async (path) => [relative(folder, path).replaceAll('\\', '/'), (await readFile(path, 'utf8')).trim()] as const,
    ),
  );
}

/** Every commit of every model in the cache, by name. */
export async function listSnapshots(cacheDir: string): Promise<CachedSnapshot[]> {
  const names = ((await orNull(readdir(cacheDir))) ?? []).filter((name) => name.startsWith(prefix)).sort();
  const found: CachedSnapshot[] = [];
  for (const name of names) {
    const id = parseRepository(name.slice(prefix.length).replace('--', '/'))?.id;
    if (id === undefined) continue;
    const paths = pathsOf(cacheDir, id);
    const refs = await readRefs(paths);
    for (const commit of ((await orNull(readdir(join(paths.folder, 'snapshots')))) ?? []).filter(isCommit).sort()) {
      const revisions = refs.filter(([, target]) => target === commit).map(([revision]) => revision);
      found.push({ id, commit, revisions, folder: paths.snapshot(commit) });
    }
  }
  return found;
}
