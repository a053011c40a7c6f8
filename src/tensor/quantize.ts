/** Owns the integer forms of a vector: fixed ranges, independent of any other text. */

/** Forms a vector can be answered in, beside float32. */
export const integerOutputs = ['int8', 'uint8', 'binary', 'ubinary'] as const;

/** One of `integerOutputs`. */
export type IntegerOutput = (typeof integerOutputs)[number];

const toInt8 = (value: number) => Math.max(-128, Math.min(127, Math.round(127 * value)));

/** Sign bits, most significant first, eight to a byte; 1 where the value is above zero. */
function packBits(values: Float32Array): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(values.length / 8));
  values.forEach((value, position) => {
    if (value > 0) bytes[position >> 3] = (bytes[position >> 3] ?? 0) | (0x80 >> (position & 7));
  });
  return bytes;
}

/**
 * The integers of a vector: `int8` = clamp(round(127 x), -128, 127), `uint8` = int8 + 128,
 * `ubinary` = packed sign bits, `binary` = ubinary - 128.
 *
 * @shape f32 [dimension] -> int8 and uint8: [dimension], binary and ubinary: [dimension / 8, rounded up]
 */
export function quantize(values: Float32Array, output: IntegerOutput): number[] {
  switch (output) {
    case 'int8':
      return Array.from(values, toInt8);
    case 'uint8':
      return Array.from(values, (value) => toInt8(value) + 128);
    case 'ubinary':
      return Array.from(packBits(values));
    case 'binary':
      return Array.from(packBits(values), (byte) => byte - 128);
  }
}
