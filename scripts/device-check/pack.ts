/** Owns writing CUDA's libraries as pieces that can travel where no network is. */
import { createReadStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { constants, createBrotliCompress } from 'node:zlib';
import { isCudaInstalled } from '../../src/cuda/install.ts';
import { setFolderOf } from '../../src/cuda/library-environment.ts';
import { setNameOf, type Wheel } from '../../src/cuda/wheels.ts';
import { manifestPath, sha256Of, type Manifest, type PackedFile, type Piece } from './manifest.ts';

/** Brotli is what every supported Node has and packs these files best; a higher quality takes minutes and gains little. */
const compression = {
  chunkSize: 1_048_576,
  params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS },
};

/** Cuts what is put into it into pieces of one size, and writes each as soon as it is full. */
function createPieceWriter(folder: string, maxPieceBytes: number) {
  const pieces: Piece[] = [];
  let parts: Buffer[] = [];
  let filledBytes = 0;
  const flush = async () => {
    if (filledBytes === 0) return;
    const bytes = Buffer.concat(parts);
    const name = `piece-${String(pieces.length + 1).padStart(3, '0')}`;
    await writeFile(join(folder, name), bytes);
    pieces.push({ name, sizeBytes: bytes.length, sha256: sha256Of(bytes) });
    parts = [];
    filledBytes = 0;
  };
  return {
    pieces,
    flush,
    async put(bytes: Buffer) {
      for (let rest = bytes; rest.length > 0;) {
        const part = rest.subarray(0, maxPieceBytes - filledBytes);
        parts.push(part);
        filledBytes += part.length;
        rest = rest.subarray(part.length);
        if (filledBytes === maxPieceBytes) await flush();
      }
    },
  };
}

/**
 * Writes the set of the cache directory to `folder`, and gives what was written.
 * @throws Error where the set is not there, whole
 */
export async function packSet(
  cacheDir: string,
  wheels: readonly Wheel[],
  folder: string,
  maxPieceBytes: number,
): Promise<Manifest> {
  if (!(await isCudaInstalled(cacheDir, wheels))) {
    throw new Error(`${cacheDir} has no complete set of CUDA's libraries: run \`trivec devices install-cuda\` first`);
  }
  await mkdir(folder, { recursive: true });
  const writer = createPieceWriter(folder, maxPieceBytes);
  const files: PackedFile[] = [];
  for (const { name } of wheels.flatMap(({ entries }) => entries)) {
    let packedBytes = 0;
    const packed = createReadStream(join(setFolderOf(cacheDir, wheels), name)).pipe(createBrotliCompress(compression));
    for await (const bytes of packed) {
      packedBytes += (bytes as Buffer).length;
      await writer.put(bytes as Buffer);
    }
    files.push({ name, packedBytes });
  }
  await writer.flush();
  const manifest: Manifest = { set: setNameOf(wheels), pieces: writer.pieces, files };
  await writeFile(manifestPath(folder), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}
