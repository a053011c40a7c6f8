/** Owns the files in the cache folder: complete under their final name, or not there at all. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, link, mkdir, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { LazyBytes } from './convert/lazy-bytes.ts';

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch {
    return null;
  }
}

/** Makes the new name itself outlast a crash; not every file system lets a folder be synchronised. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch {
    return;
  }
}

/** Makes a file under a name of its own, then gives it the final one. */
async function place(path: string, make: (temporaryPath: string) => Promise<void>): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  const temporaryPath = join(folder, `.${basename(path)}.${randomUUID()}.tmp`);
  try {
    await make(temporaryPath);
    await rename(temporaryPath, path);
  } finally {
    await rm(temporaryPath, { force: true });
  }
  await syncFolder(folder);
}

/**
 * Puts a file there, unless one of the right size is there already. Several processes may do so at once:
 * each writes under a name of its own and the last rename wins, with equal content.
 */
export async function ensureCacheFile(path: string, content: LazyBytes): Promise<void> {
  if ((await sizeOf(path)) === content.byteLength) return;
  await place(path, async (temporaryPath) => {
    const file = await open(temporaryPath, 'wx', 0o644);
    try {
      for await (const chunk of content.chunks()) await file.writeFile(chunk);
      await file.sync();
    } finally {
      await file.close();
    }
  });
}

/**
 * Puts another file's content there without a second copy where the file system can do that.
 * A link by name will not do: the engine follows it and refuses files outside the graph's folder.
 */
export async function ensureCacheLink(path: string, sourcePath: string): Promise<void> {
  const source = await realpath(sourcePath);
  if ((await sizeOf(path)) === (await stat(source)).size) return;
  await place(path, async (temporaryPath) => {
    try {
      await link(source, temporaryPath);
    } catch {
      await copyFile(source, temporaryPath, constants.COPYFILE_FICLONE);
    }
  });
}
