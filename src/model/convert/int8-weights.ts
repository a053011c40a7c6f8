/** Owns the int8 form of a weight matrix: symmetric, one scale for each output channel. */
import { mapBytes, memoryBytes } from './lazy-bytes.ts';
import type { LazyBytes } from './lazy-bytes.ts';
import { bytesOf, floatsOf } from './tensor-values.ts';

/** Largest int8 in use; -128 stays out, so that the range is the same on both sides. */
const maxInt8 = 127;

/** A matrix and its direction. */
export interface WeightMatrix {
  readonly values: LazyBytes;
  readonly rows: number;
  readonly columns: number;
  /** Whether its rows are the output channels, else its columns. */
  readonly isByRow: boolean;
}

/** A matrix as whole numbers and the factors that give back what it was. */
export interface Int8Weights {
  /** @shape int8 [rows, columns] */
  readonly values: LazyBytes;
  /** @shape f32 [channels] */
  readonly scales: LazyBytes;
}

interface Place {
  row: number;
  column: number;
}

/** Calls `visit` with each value and its channel, in order. */
function eachValue(
  floats: Float32Array,
  { columns, isByRow }: WeightMatrix,
  place: Place,
  visit: (value: number, channel: number, index: number) => void,
): void {
  for (let index = 0; index < floats.length; index += 1) {
    visit(floats[index]!, isByRow ? place.row : place.column, index);
    place.column += 1;
    if (place.column === columns) {
      place.column = 0;
      place.row += 1;
    }
  }
}

async function findScales(matrix: WeightMatrix): Promise<Float32Array> {
  const scales = new Float32Array(matrix.isByRow ? matrix.rows : matrix.columns);
  const place = { row: 0, column: 0 };
  for await (const chunk of matrix.values.chunks()) {
    eachValue(floatsOf(chunk), matrix, place, (value, channel) => {
      const size = Math.abs(value) / maxInt8;
      if (size > scales[channel]!) scales[channel] = size;
    });
  }
  // A channel of zeros is zero with any scale.
  return scales.map((scale) => (scale === 0 ? 1 : scale));
}

/** The int8 form of a float32 matrix; it is read twice, never held. */
export function quantizeWeights(matrix: WeightMatrix): Int8Weights {
  const channels = matrix.isByRow ? matrix.rows : matrix.columns;
  let found: Promise<Float32Array> | null = null;
  const scales = (): Promise<Float32Array> => (found ??= findScales(matrix));
  return {
    scales: mapBytes(memoryBytes(new Uint8Array(0)), channels * 4, scales, (_, made) => bytesOf(made)),
    values: mapBytes(
      matrix.values,
      matrix.rows * matrix.columns,
      async () => ({ scales: await scales(), place: { row: 0, column: 0 } }),
      (chunk, state) => {
        const floats = floatsOf(chunk);
        const rounded = new Int8Array(floats.length);
        eachValue(floats, matrix, state.place, (value, channel, index) => {
          rounded[index] = Math.round(value / state.scales[channel]!);
        });
        return bytesOf(rounded);
      },
    ),
  };
}
