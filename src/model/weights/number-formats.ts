/** Owns the number formats that weights are stored in, and their widening to float32. */
import { widenHalves } from '../convert/half.ts';

/** A format of little-endian numbers. */
export type NumberFormat = 'f64' | 'f32' | 'f16' | 'bf16';

/** Size of a number in each format. @unit bytes */
export const formatBytes: Readonly<Record<NumberFormat, number>> = { f64: 8, f32: 4, f16: 2, bf16: 2 };

/** The numbers in `bytes` as float32, rounded where the format is wider. */
export function toFloats(bytes: Uint8Array, format: NumberFormat): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const values = new Float32Array(Math.floor(bytes.byteLength / formatBytes[format]));
  if (format === 'f16') return widenHalves(Uint16Array.from(values, (_, index) => view.getUint16(index * 2, true)));
  // The upper half of a float32 is a bf16: shifting it back is exact.
  const scratch = new DataView(new ArrayBuffer(4));
  for (let index = 0; index < values.length; index += 1) {
    if (format === 'f32') values[index] = view.getFloat32(index * 4, true);
    else if (format === 'f64') values[index] = view.getFloat64(index * 8, true);
    else {
      scratch.setUint32(0, view.getUint16(index * 2, true) * 0x10000);
      values[index] = scratch.getFloat32(0);
    }
  }
  return values;
}
