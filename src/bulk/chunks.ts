/** Owns cutting the rows of an input into chunks: the same input always gives the same ones. */
import { crc32 } from 'node:zlib';
import type { RowsOfFile } from './read/rows.ts';
import type { BadRow, Chunk, InputPosition, TextRow } from './row.ts';
import { BulkFailure, describeBadRow } from './row.ts';

/** When a chunk ends. */
export interface ChunkLimits {
  readonly texts: number;
  /** Characters of its texts, about. */
  readonly characters: number;
}

/** Texts of the first chunk, twice as many in each one behind it: no device waits until a whole chunk was read. */
const firstTexts = 16;

const limitsOf = (number: number, { texts, characters }: ChunkLimits): ChunkLimits => ({
  texts: Math.min(texts, firstTexts * 2 ** number),
  characters,
});

/** Most rows of a chunk that are left out. */
const maxBadRows = 1000;

/** Where the cutting begins. */
export interface ChunkStart {
  readonly number: number;
  readonly index: number;
  readonly position: InputPosition;
}

/**
 * The chunks of the rows.
 * @throws BulkFailure at the first bad row, where these are not to be skipped
 */
export async function* chunksOf(
  rows: AsyncIterable<RowsOfFile>,
  start: ChunkStart,
  options: { readonly limits: ChunkLimits; readonly skipsBad: boolean; readonly fileNames: readonly string[] },
): AsyncGenerator<Chunk> {
  const { limits, skipsBad, fileNames } = options;
  let { number, index, position } = start;
  let open = new OpenChunk(number, index);
  for await (const { file, rows: read } of rows) {
    for (const { text, id, reason, line, next } of read) {
      if (text === null) {
        const bad = { index, file: fileNames[file] ?? '', line, reason: reason ?? 'cannot be read' };
        if (!skipsBad) throw new BulkFailure(`${describeBadRow(bad)}; --skip-bad leaves such rows out`);
        open.leaveOut(bad);
      } else {
        open.add({ index, id, text, file: fileNames[file] ?? '', line });
      }
      index += 1;
      if (next !== null) position = { file, ...next };
      if (next !== null && open.isFull(limitsOf(number, limits))) {
        yield open.close(position);
        number += 1;
        open = new OpenChunk(number, index);
      }
    }
  }
  // Behind everything: a bad row at the end may be one behind which reading cannot begin.
  if (open.rows.length + open.bad.length > 0) yield open.close({ file: fileNames.length, offset: 0, line: 0 });
}

class OpenChunk {
  readonly rows: TextRow[] = [];
  readonly bad: BadRow[] = [];
  readonly #number: number;
  readonly #firstIndex: number;
  #characters = 0;
  #digest = 0;

  constructor(number: number, firstIndex: number) {
    this.#number = number;
    this.#firstIndex = firstIndex;
  }

  add(row: TextRow): void {
    this.rows.push(row);
    this.#characters += row.text.length;
    this.#digest = crc32(`${String(row.id)}\0${row.text}\0`, this.#digest);
  }

  /** Counted like a text: rows behind another number of bad ones are others. */
  leaveOut(row: BadRow): void {
    this.bad.push(row);
    this.#digest = crc32(`${String(row.index)}\0${row.reason}\0bad\0`, this.#digest);
  }

  isFull({ texts, characters }: ChunkLimits): boolean {
    return this.rows.length >= texts || this.#characters >= characters || this.bad.length >= maxBadRows;
  }

  close(after: InputPosition): Chunk {
    const { rows, bad } = this;
    return { number: this.#number, rows, bad, firstIndex: this.#firstIndex, after, digest: this.#digest };
  }
}
