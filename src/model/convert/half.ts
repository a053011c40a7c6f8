/** Owns the conversion between float16 and float32, bit by bit. */

/** Largest finite float16. @source IEEE 754-2019, binary16 */
export const maxFloat16 = 65_504;

/** float32 bits of a float16. */
function widenBits(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >>> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0x1f) return (sign | 0x7f800000 | (fraction << 13)) >>> 0;
  if (exponent !== 0) return (sign | ((exponent + 112) << 23) | (fraction << 13)) >>> 0;
  if (fraction === 0) return sign >>> 0;
  // A subnormal float16 is a normal float32: its leading bit becomes the implicit one.
  const shift = Math.clz32(fraction) - 21;
  return (sign | ((113 - shift) << 23) | (((fraction << shift) & 0x3ff) << 13)) >>> 0;
}

/** float32 bits of every float16. */
let widenTable: Uint32Array | null = null;

/** float16 values as float32, exactly. */
export function widenHalves(halves: Uint16Array): Float32Array {
  widenTable ??= Uint32Array.from({ length: 65_536 }, (_, half) => widenBits(half));
  const table = widenTable;
  const bits = new Uint32Array(halves.length);
  for (let index = 0; index < halves.length; index += 1) bits[index] = table[halves[index]!]!;
  return new Float32Array(bits.buffer);
}

/** float16 bits nearest to a float32, ties to even; what is too large becomes the largest finite value. */
function narrowBits(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // From half a step beyond the largest value on, rounding would give infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7bff;
  if (magnitude >= 0x38800000) {
    const isOdd = (magnitude >>> 13) & 1;
    return sign | ((magnitude + 0xfff + isOdd - 0x38000000) >>> 13);
  }
  if (magnitude <= 0x33000000) return sign;
  const shift = 126 - (magnitude >>> 23);
  const mantissa = (magnitude & 0x7fffff) | 0x800000;
  const floor = mantissa >>> shift;
  const rest = mantissa & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  return sign | (floor + (rest > half || (rest === half && floor % 2 === 1) ? 1 : 0));
}

/** float32 values as float16, rounded to nearest and clamped to the finite range; NaN stays. */
export function narrowFloats(floats: Float32Array): Uint16Array {
  const bits = new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
  const halves = new Uint16Array(floats.length);
  for (let index = 0; index < halves.length; index += 1) halves[index] = narrowBits(bits[index]!);
  return halves;
}
