/** Owns the proof that a file is the one the hub lists: its size and its hash. */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';

/** A file of a repository as the hub lists it. */
export interface HubFile {
  /** Inside the repository, with `/`; never leads out of it. */
  readonly path: string;
  readonly sizeBytes: number;
  /** sha256 of a large file, git's SHA-1 of any other; names the file in the cache. */
  readonly hash: string;
}

const sha256Digits = 64;

/** Name of the kind of hash that a file is listed with. */
export const hashName = ({ hash }: HubFile): string => (hash.length === sha256Digits ? 'sha256' : 'git SHA-1');

/**
 * An empty hash of the kind that the file is listed with.
 * @source git's object format: a blob is hashed behind the header `blob <size>` and a zero byte
 */
export function startHash(file: HubFile): Hash {
  return file.hash.length === sha256Digits
    ? createHash('sha256')
    : createHash('sha1').update(`blob ${String(file.sizeBytes)}\0`);
}

/** The hash, fed with the content of a file on disk. */
export async function feedFile(hash: Hash, path: string): Promise<Hash> {
  for await (const chunk of createReadStream(path)) hash.update(chunk as Uint8Array);
  return hash;
}

/** Whether a file on disk is the one the hub lists, byte for byte. */
export async function isIntact(path: string, file: HubFile): Promise<boolean> {
  try {
    if ((await stat(path)).size !== file.sizeBytes) return false;
  } catch {
    return false;
  }
  return (await feedFile(startHash(file), path)).digest('hex') === file.hash;
}
