/** Owns taking single files out of a wheel, which is a ZIP archive: as a stream, proved on the way. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw } from 'node:zlib';
import type { WheelEntry } from './wheels.ts';

const endSignature = 0x06054b50;
const entrySignature = 0x02014b50;
const localSignature = 0x04034b50;
/** Sizes of the end record without its comment, and of the fixed parts of the others. @unit bytes */
const endBytes = 22;
const entryBytes = 46;
const localBytes = 30;
/** Longest comment behind the end record. @unit bytes */
const maxCommentBytes = 0xffff;
/** Longest directory that is read; that of the largest wheel has 100 kB. @unit bytes */
const maxDirectoryBytes = 16_777_216;
/** Bytes that are inflated and written at a time. @unit bytes */
const pieceBytes = 262_144;

const methods = { stored: 0, deflated: 8 } as const;

/** Where an entry lies in the archive. */
interface Place {
  readonly method: number;
  readonly packedBytes: number;
  /** Of the entry's own header, behind which its content begins. */
  readonly headerOffset: number;
}

async function readAt(handle: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await handle.read(bytes, 0, length, offset);
  if (bytesRead < length) throw new Error('the archive is cut off');
  return bytes;
}

async function readDirectory(handle: FileHandle): Promise<Buffer> {
  const { size } = await handle.stat();
  const tailBytes = Math.min(size, endBytes + maxCommentBytes);
  const tail = await readAt(handle, size - tailBytes, tailBytes);
  for (let at = tailBytes - endBytes; at >= 0; at -= 1) {
    if (tail.readUInt32LE(at) !== endSignature) continue;
    const [length, offset] = [tail.readUInt32LE(at + 12), tail.readUInt32LE(at + 16)];
    if (length > maxDirectoryBytes) throw new Error('the archive’s directory is too large');
    return readAt(handle, offset, length);
  }
  throw new Error('is no ZIP archive');
}

/**
 * The place of an entry. Throws where the archive has none of that name.
 * @source PKWARE APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16
 */
function placeOf(directory: Buffer, path: string): Place {
  for (let at = 0; at + entryBytes <= directory.byteLength;) {
    if (directory.readUInt32LE(at) !== entrySignature) break;
    const nameBytes = directory.readUInt16LE(at + 28);
    if (directory.toString('utf8', at + entryBytes, at + entryBytes + nameBytes) === path) {
      return {
        method: directory.readUInt16LE(at + 10),
        packedBytes: directory.readUInt32LE(at + 20),
        headerOffset: directory.readUInt32LE(at + 42),
      };
    }
    at += entryBytes + nameBytes + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
  }
  throw new Error(`holds no ${path}`);
}

async function firstByteOf(handle: FileHandle, { headerOffset }: Place): Promise<number> {
  const header = await readAt(handle, headerOffset, localBytes);
  if (header.readUInt32LE(0) !== localSignature) throw new Error('the archive is damaged');
  return headerOffset + localBytes + header.readUInt16LE(26) + header.readUInt16LE(28);
}

function inflaterOf({ method }: Place) {
  if (method === methods.stored) return new PassThrough();
  if (method === methods.deflated) return createInflateRaw({ chunkSize: pieceBytes });
  throw new Error(`is compressed by a method that is not known here (${String(method)})`);
}

async function copyEntry(
  wheelPath: string,
  wheel: FileHandle,
  entry: WheelEntry,
  target: FileHandle,
  onBytes: (doneBytes: number) => void,
): Promise<void> {
  const place = placeOf(await readDirectory(wheel), entry.path);
  const start = await firstByteOf(wheel, place);
  const packed = createReadStream(wheelPath, {
    start,
    end: start + place.packedBytes - 1,
    highWaterMark: pieceBytes,
  });
  const hash = createHash('sha256');
  let doneBytes = 0;
  let failure: unknown = null;
  const copied = pipeline(packed, inflaterOf(place), async (pieces: AsyncIterable<Uint8Array>) => {
    for await (const piece of pieces) {
      doneBytes += piece.byteLength;
      // Before it is written: what is not the entry must not fill the disk.
      if (doneBytes > entry.sizeBytes) throw new Error(`${entry.path} is longer than ${String(entry.sizeBytes)} bytes`);
      hash.update(piece);
      await target.appendFile(piece).catch((error: unknown) => {
        failure = error;
        throw error;
      });
      onBytes(doneBytes);
    }
  });
  // Where the disk is full, the pipeline tells no more than that it was aborted.
  await copied.catch((error: unknown) => {
    throw failure ?? error;
  });
  const found = hash.digest('hex');
  if (found !== entry.sha256) throw new Error(`${entry.path}: expected sha256 ${entry.sha256}, found ${found}`);
}

/**
 * Puts an entry of a wheel there under its final name, whole and proved; nothing is there under that name otherwise.
 * Throws an Error where the wheel, whose own hash was proved before, does not hold what it should.
 */
export async function unpackEntry(
  wheelPath: string,
  entry: WheelEntry,
  path: string,
  onBytes: (doneBytes: number) => void,
): Promise<void> {
  const incompletePath = `${path}.incomplete`;
  const wheel = await open(wheelPath, 'r');
  try {
    const target = await open(incompletePath, 'w', 0o644);
    try {
      await copyEntry(wheelPath, wheel, entry, target, onBytes);
      await target.sync();
    } finally {
      await target.close();
    }
  } finally {
    await wheel.close();
  }
  await rename(incompletePath, path);
}
