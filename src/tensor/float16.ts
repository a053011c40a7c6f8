/** Owns reading float16 numbers as a device gives them. */

/** A float16 has its exponent counted from 15, a float32 from 127. */
const exponentScale = 2 ** 112;

/**
 * The float32 values of float16 bits, exactly, infinities and NaN included. Any 16-bit view will do: newer versions of
 * Node hold them in a Float16Array, older ones in a Uint16Array, and only the bits mean the same in both.
 * @shape f16 [length] -> f32 [length]
 * @source IEEE 754-2019, binary16
 */
export function widenFloat16(view: ArrayBufferView): Float32Array {
  const halves = new Uint16Array(view.buffer, view.byteOffset, view.byteLength / Uint16Array.BYTES_PER_ELEMENT);
  const floats = new Float32Array(halves.length);
  const bits = new Uint32Array(floats.buffer);
  for (const [position, half] of halves.entries()) {
    bits[position] = (half & 0x7fff) << 13;
    // Subnormal numbers come out right as well: a product of powers of two is exact.
    floats[position] = (floats[position] ?? 0) * exponentScale;
    const isNotFinite = (half & 0x7c00) === 0x7c00;
    bits[position] = (bits[position] ?? 0) | (isNotFinite ? 0x7f800000 : 0) | ((half & 0x8000) << 16);
  }
  return floats;
}
