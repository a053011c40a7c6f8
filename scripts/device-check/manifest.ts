/** Owns the list of the pieces that CUDA's libraries travel in. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A piece of the compressed files, which lie one behind the other. */
export interface Piece {
  readonly name: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** A compressed file; what it holds is pinned by the wheels. */
export interface PackedFile {
  readonly name: string;
  /** Length in the pieces. @unit bytes */
  readonly packedBytes: number;
}

/** What was packed. */
export interface Manifest {
  /** Name of the set's folder. */
  readonly set: string;
  readonly pieces: readonly Piece[];
  readonly files: readonly PackedFile[];
}

const manifestName = 'manifest.json';

/** Where the manifest lies beside the pieces. */
export const manifestPath = (folder: string): string => join(folder, manifestName);

/** The manifest of a folder. */
export async function readManifest(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(manifestPath(folder), 'utf8')) as Manifest;
}

/** The sha256 of bytes in hexadecimal digits. */
export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/**
 * The pieces in their order, each proved before it is given.
 * @throws Error that names every piece that is missing, or the one that is damaged
 */
export async function* readPieces(folder: string, pieces: readonly Piece[]): AsyncGenerator<Uint8Array> {
  for (const { name, sha256 } of pieces) {
    const bytes = await readFile(join(folder, name));
    if (sha256Of(bytes) !== sha256) throw new Error(`${join(folder, name)} is damaged: bring it again`);
    yield bytes;
  }
}
