/** Owns vectors as plain numbers in memory order, the form that every binary format takes. */
import { quantize } from '../../tensor/quantize.ts';
import type { IntegerOutput } from '../../tensor/quantize.ts';

/** Numbers of a vector. */
export type Packed = Float32Array | Int8Array | Uint8Array;

/** A list of that form over bytes, which begin at a multiple of its element size. */
export function unpack(bytes: Buffer, output: IntegerOutput | null): Packed {
  const { buffer, byteOffset, byteLength } = bytes;
  if (output === null) return new Float32Array(buffer, byteOffset, byteLength / 4);
  return isSigned(output)
    ? new Int8Array(buffer, byteOffset, byteLength)
    : new Uint8Array(buffer, byteOffset, byteLength);
}

/** Whether the integers may be below zero. */
export const isSigned = (output: IntegerOutput): boolean => output === 'int8' || output === 'binary';

/** The vector in its form, as bytes. */
export function pack(vector: Float32Array, output: IntegerOutput | null): Buffer {
  if (output === null) return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
  return Buffer.from(quantize(vector, output).map((value) => value & 0xff));
}
