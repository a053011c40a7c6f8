/** Owns bytes that are read, and changed, only while they are written. */
import { open } from 'node:fs/promises';

/** Largest piece that is held at a time; whole values of every element type fit into it. @unit bytes */
const maxChunkBytes = 1_048_576;

/** Bytes of a known number that are made piece by piece. */
export interface LazyBytes {
  readonly byteLength: number;
  /** The bytes from the start, each time anew; a chunk is valid until the next one is asked for. */
  chunks(): AsyncIterable<Uint8Array>;
}

/** Bytes in memory. */
export const memoryBytes = (bytes: Uint8Array): LazyBytes => ({
  byteLength: bytes.byteLength,
  async *chunks() {
    yield bytes;
  },
});

/** A stretch of a file. The iteration fails where the file ends before it. */
export const fileBytes = (path: string, offset: number, byteLength: number): LazyBytes => ({
  byteLength,
  async *chunks() {
    const file = await open(path, 'r');
    try {
      const buffer = new Uint8Array(Math.min(byteLength, maxChunkBytes));
      for (let done = 0; done < byteLength; done += buffer.byteLength) {
        const wanted = Math.min(buffer.byteLength, byteLength - done);
        yield await readExactly(file, buffer.subarray(0, wanted), offset + done);
      }
    } finally {
      await file.close();
    }
  },
});

async function readExactly(
  file: Awaited<ReturnType<typeof open>>,
  target: Uint8Array,
  position: number,
): Promise<Uint8Array> {
  let done = 0;
  while (done < target.byteLength) {
    const { bytesRead } = await file.read(target, done, target.byteLength - done, position + done);
    if (bytesRead === 0) throw new Error('the file became shorter while it was read');
    done += bytesRead;
  }
  return target;
}

/** One behind the other. */
export const concatBytes = (parts: readonly LazyBytes[]): LazyBytes => ({
  byteLength: parts.reduce((sum, part) => sum + part.byteLength, 0),
  async *chunks() {
    for (const part of parts) yield* part.chunks();
  },
});

/** What `convert` makes of the values; it sees them in order and `state` is new for each reading. */
export function mapBytes<State>(
  source: LazyBytes,
  byteLength: number,
  start: () => State | Promise<State>,
  convert: (chunk: Uint8Array, state: State) => Uint8Array,
): LazyBytes {
  return {
    byteLength,
    async *chunks() {
      const state = await start();
      for await (const chunk of source.chunks()) yield convert(chunk, state);
    },
  };
}

/** The whole in one buffer, for what is small. */
export async function collectBytes(source: LazyBytes): Promise<Uint8Array> {
  const all = new Uint8Array(source.byteLength);
  let position = 0;
  for await (const chunk of source.chunks()) {
    all.set(chunk, position);
    position += chunk.byteLength;
  }
  return all;
}
