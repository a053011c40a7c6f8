/** Owns the output as JSON lines: an object a row, which is its own work form. */
import { JsonWriter } from '../../rpc/json-writer.ts';
import { quantize } from '../../tensor/quantize.ts';
import type { RowId, TextRow, Vectors } from '../row.ts';
import type { EmbeddedChunk, OutputFormat, OutputShape } from './format.ts';

/** JSON lines of a shape. */
export function jsonLines(shape: OutputShape): OutputFormat {
  return {
    head: Buffer.alloc(0),
    encode: ({ chunk, vectors }: EmbeddedChunk) => {
      const writer = new JsonWriter(65_536);
      for (const [position, row] of chunk.rows.entries()) {
        writeStart(writer, row);
        writeRow(writer, vectors, position, shape);
        writer.ascii('}\n');
      }
      return writer.finish();
    },
    complete: async ({ workPath }) => workPath,
  };
}

function writeStart(writer: JsonWriter, { index, id }: TextRow): void {
  writer.ascii(`{"index":${String(index)}`);
  if (id !== null) writer.ascii(',"id":').text(showId(id));
}

const showId = (id: RowId): string => (typeof id === 'bigint' ? id.toString() : JSON.stringify(id));

function writeRow(writer: JsonWriter, vectors: Vectors, position: number, shape: OutputShape): void {
  const write = (vector: Float32Array): JsonWriter =>
    shape.output === null ? writer.float32List(vector) : writer.ascii(`[${quantize(vector, shape.output).join(',')}]`);
  switch (vectors.kind) {
    case 'dense':
      writer.ascii(',"embedding":');
      write(vectors.vectors[position] ?? new Float32Array());
      return;
    case 'sparse': {
      const { indices, values } = vectors.sparse[position] ?? { indices: new Int32Array(), values: new Float32Array() };
      writer.ascii(`,"indices":[${indices.join(',')}],"values":`).float32List(values);
      return;
    }
    case 'multi': {
      writer.ascii(',"matrix":[');
      const { values, dimension } = vectors.matrices[position] ?? { values: new Float32Array(), dimension: 1 };
      for (let start = 0; start < values.length; start += dimension) {
        if (start > 0) writer.ascii(',');
        write(values.subarray(start, start + dimension));
      }
      writer.ascii(']');
    }
  }
}
