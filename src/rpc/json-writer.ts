/** Owns writing JSON straight into bytes: text, and float32 in the fewest digits that read back equal. */
import { closeBracket, comma, openBracket } from './json-characters.ts';

const zero = 0x30;
const minus = 0x2d;
const decimalPoint = 0x2e;

/** Exact powers of ten in double precision. */
const powersOfTen = Float64Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);
/** The least whole number of eight digits, with which most float32 read back equal: fewer are tried then, else nine. */
const leastOfEightDigits = 1e7;
/** Numbers from here on, up to `largeFrom`, are written without an exponent, as in JavaScript. */
const plainFrom = 1e-6;
/** Numbers from here on have no eighth digit behind the point. */
const largeFrom = 1e7;
/** Longest text of one float32 below 1e16: sign, `0.`, 5 zeros, 9 digits. */
export const maxFloatBytes = 17;
/** Longest text of any float32: sign and 21 digits, above which JavaScript writes an exponent. */
const longestFloatBytes = 22;

/** A growing byte buffer for one JSON text. */
export class JsonWriter {
  #bytes: Buffer;
  #length = 0;

  constructor(initialBytes = 1024) {
    this.#bytes = Buffer.allocUnsafe(initialBytes);
  }

  /** Appends text as UTF-8. */
  text(text: string): this {
    this.#reserve(text.length * 3);
    this.#length += this.#bytes.write(text, this.#length);
    return this;
  }

  /** Appends text whose characters are ASCII, without looking at them. */
  ascii(text: string): this {
    this.#reserve(text.length);
    this.#length += this.#bytes.write(text, this.#length, 'latin1');
    return this;
  }

  /**
   * Appends a number that reads back, as a double rounded to float32, to exactly `value`.
   * The caller has made sure that it is finite.
   */
  float32(value: number): this {
    this.#reserve(longestFloatBytes);
    this.#length = putFloat32(this.#bytes, this.#length, value);
    return this;
  }

  /** Appends `[a,b,…]`. */
  float32List(values: Float32Array): this {
    this.#reserve(2 + values.length * (longestFloatBytes + 1));
    const bytes = this.#bytes;
    let end = this.#length;
    bytes[end++] = openBracket;
    for (let index = 0; index < values.length; index += 1) {
      if (index > 0) bytes[end++] = comma;
      end = putFloat32(bytes, end, values[index] ?? 0);
    }
    bytes[end++] = closeBracket;
    this.#length = end;
    return this;
  }

  /** Appends bytes that are JSON already. */
  raw(bytes: Uint8Array): this {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    return this;
  }

  /** What was written; the writer is not used afterwards. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + count));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

/** Writes the fewest digits that read back equal, and gives the place behind them; there must be room for the longest. */
function putFloat32(bytes: Buffer, start: number, value: number): number {
  let end = start;
  if (value < 0) bytes[end++] = minus;
  const magnitude = Math.abs(value);
  if (magnitude >= plainFrom && magnitude < largeFrom) {
    let decimals = magnitude < 1 ? 8 : 1;
    while (magnitude * powerOfTen(decimals) < leastOfEightDigits) decimals += 1;
    let scaled = scaleIfExact(magnitude, decimals);
    if (scaled === inexact) {
      decimals += 1;
      scaled = scaleIfExact(magnitude, decimals);
    } else {
      for (; decimals > 0; decimals -= 1) {
        const shorter = scaleIfExact(magnitude, decimals - 1);
        if (shorter === inexact) break;
        scaled = shorter;
      }
    }
    if (scaled !== inexact) return putDecimal(bytes, end, scaled, decimals);
  }
  end += bytes.write(rareText(magnitude), end, 'latin1');
  return end;
}

const powerOfTen = (exponent: number): number => powersOfTen[exponent] ?? Number.NaN;

/** What no scaled magnitude is. */
const inexact = -1;

/** `magnitude x 10^decimals` as a whole number below 2^31, or `inexact` where that does not read back equal. */
function scaleIfExact(magnitude: number, decimals: number): number {
  const power = powerOfTen(decimals);
  const scaled = Math.round(magnitude * power);
  return Math.fround(scaled / power) === magnitude ? scaled : inexact;
}

/** Writes `scaled / 10^decimals`, a whole number below 2^31 before the division. */
function putDecimal(bytes: Buffer, start: number, scaled: number, decimals: number): number {
  const power = powerOfTen(decimals);
  const whole = scaled < power ? 0 : Math.floor(scaled / power);
  const point = start + digitsOf(whole);
  putDigits(bytes, start, point, whole);
  if (decimals === 0) return point;
  const end = point + 1 + decimals;
  bytes[point] = decimalPoint;
  putDigits(bytes, point + 1, end, whole === 0 ? scaled : scaled - whole * power);
  return end;
}

function digitsOf(whole: number): number {
  let digits = 1;
  while (whole >= powerOfTen(digits)) digits += 1;
  return digits;
}

/** Fills `start` to `end` with the last digits of a whole number below 2^31, zeros before them. */
function putDigits(bytes: Buffer, start: number, end: number, whole: number): void {
  let rest = whole | 0;
  for (let position = end - 1; position >= start; position -= 1) {
    const next = (rest / 10) | 0;
    bytes[position] = zero + rest - next * 10;
    rest = next;
  }
}

/** Zero, very large, very small and awkward values: the engine's own shortest form of as many digits as are needed. */
function rareText(magnitude: number): string {
  for (let digits = 1; digits <= 9; digits += 1) {
    const candidate = Number(magnitude.toPrecision(digits));
    if (Math.fround(candidate) === magnitude) return String(candidate);
  }
  return String(magnitude);
}
