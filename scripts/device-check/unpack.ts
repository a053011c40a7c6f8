/** Owns restoring CUDA's libraries from their pieces into a cache directory. */
import { createWriteStream, existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';
import { isCudaInstalled } from '../../src/cuda/install.ts';
import { setFolderOf } from '../../src/cuda/library-environment.ts';
import { setNameOf, type Wheel } from '../../src/cuda/wheels.ts';
import { isIntact } from '../../src/model/hub/file-hash.ts';
import { readManifest, readPieces } from './manifest.ts';

/** Gives the next so many bytes of a stream, again and again. */
function createByteReader(source: AsyncIterator<Uint8Array, unknown>) {
  let rest: Uint8Array = new Uint8Array();
  return async function* take(count: number): AsyncGenerator<Uint8Array> {
    for (let missing = count; missing > 0;) {
      if (rest.length === 0) {
        const next = await source.next();
        if (next.done === true) throw new Error('the pieces end too soon');
        rest = next.value;
      }
      const part = rest.subarray(0, missing);
      rest = rest.subarray(part.length);
      missing -= part.length;
      yield part;
    }
  };
}

/**
 * The folder of the set, every file proved by the hash that this program pins; it has its name only when it is whole.
 * @throws Error that says what is missing, damaged, or of another version
 */
export async function unpackSet(folder: string, wheels: readonly Wheel[], cacheDir: string): Promise<string> {
  const target = setFolderOf(cacheDir, wheels);
  if (await isCudaInstalled(cacheDir, wheels)) return target;
  const { set, pieces, files } = await readManifest(folder);
  if (set !== setNameOf(wheels)) throw new Error(`${folder} holds the libraries of another version: pack them again`);
  const missing = pieces.filter(({ name }) => !existsSync(join(folder, name))).map(({ name }) => name);
  if (missing.length > 0) throw new Error(`${folder} lacks ${missing.join(', ')}`);
  const incomplete = `${target}.unpacking`;
  await rm(incomplete, { recursive: true, force: true });
  await mkdir(incomplete, { recursive: true });
  try {
    const take = createByteReader(readPieces(folder, pieces));
    const packedBytes = new Map(files.map((file) => [file.name, file.packedBytes]));
    // In the order of the wheels, which the set's name stands for; names from the manifest lead nowhere.
    for (const { name, sizeBytes, sha256 } of wheels.flatMap(({ entries }) => entries)) {
      const path = join(incomplete, name);
      const packed = Readable.from(take(packedBytes.get(name) ?? 0), { objectMode: false });
      await pipeline(packed, createBrotliDecompress(), createWriteStream(path));
      if (!(await isIntact(path, { path: name, sizeBytes, hash: sha256 }))) throw new Error(`${name} is damaged`);
    }
    await mkdir(dirname(target), { recursive: true });
    await rm(target, { recursive: true, force: true });
    await rename(incomplete, target);
  } finally {
    await rm(incomplete, { recursive: true, force: true });
  }
  return target;
}
