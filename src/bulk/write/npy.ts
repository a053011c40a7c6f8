/** Owns the output as one NumPy array: a head whose number of rows is written at the end, then the vectors. */
import { open } from 'node:fs/promises';
import type { EmbeddedChunk, OutputFormat, OutputShape } from './format.ts';
import { elementsOf } from './format.ts';
import { isSigned, pack } from './packed.ts';

/** Length of the head: the same for any number of rows. @unit bytes */
const headBytes = 128;

/** The head of an array in C order. */
function headOf(shape: OutputShape, rows: number): Buffer {
  const type = shape.output === null ? '<f4' : isSigned(shape.output) ? '|i1' : '|u1';
  const words = `{'descr': '${type}', 'fortran_order': False, 'shape': (${String(rows)}, ${String(elementsOf(shape))}), }`;
  const start = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, headBytes - 10, 0]);
  return Buffer.concat([start, Buffer.from(`${words.padEnd(headBytes - 11)}\n`, 'latin1')]);
}

/** An array of a dense shape. */
export function npy(shape: OutputShape): OutputFormat {
  return {
    head: headOf(shape, 0),
    encode: ({ vectors }: EmbeddedChunk) =>
      Buffer.concat(vectors.kind === 'dense' ? vectors.vectors.map((vector) => pack(vector, shape.output)) : []),
    async complete({ workPath, rows }) {
      const handle = await open(workPath, 'r+');
      try {
        await handle.write(headOf(shape, rows), 0, headBytes, 0);
        await handle.sync();
      } finally {
        await handle.close();
      }
      return workPath;
    },
  };
}
