/** Owns making changes to folders and files last. */
import { open, rename, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes all bytes at a place. */
export async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}

/** Makes the names in the folder of a path last; where folders cannot be synced nothing is lost but that. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(dirname(path), 'r').catch(() => null);
  if (handle === null) return;
  try {
    await handle.sync();
  } catch {
    // Windows has no such thing.
  } finally {
    await handle.close();
  }
}

/** Renames for good. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncFolder(to);
}
