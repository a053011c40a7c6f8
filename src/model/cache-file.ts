/** Owns the files in the cache folder: complete under their final name, or not there at all. */
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** A file's content: the whole of another file where there is one, then bytes. */
export interface CacheContent {
  readonly sourcePath: string | null;
  readonly bytes: Uint8Array;
}

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch {
    return null;
  }
}

async function writeContent(file: FileHandle, { sourcePath, bytes }: CacheContent): Promise<void> {
  if (sourcePath !== null) {
    for await (const chunk of createReadStream(sourcePath)) await file.writeFile(chunk as Buffer);
  }
  await file.writeFile(bytes);
  await file.sync();
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

/**
 * Puts a file there, unless one of the right size is there already. Several processes may do so at once:
 * each writes under a name of its own and the last rename wins, with equal content.
 */
export async function ensureCacheFile(path: string, content: CacheContent): Promise<void> {
  const sourceBytes = content.sourcePath === null ? 0 : (await stat(content.sourcePath)).size;
  const expectedBytes = sourceBytes + content.bytes.byteLength;
  if ((await sizeOf(path)) === expectedBytes) return;
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  const temporaryPath = join(folder, `.${basename(path)}.${randomUUID()}.tmp`);
  try {
    const file = await open(temporaryPath, 'wx', 0o644);
    await writeContent(file, content).finally(() => file.close());
    await rename(temporaryPath, path);
  } finally {
    await rm(temporaryPath, { force: true });
  }
  await syncFolder(folder);
}
