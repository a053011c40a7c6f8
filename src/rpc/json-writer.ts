/** Owns writing JSON straight into bytes: text, and float32 in the fewest digits that read back equal. */

const zero = 0x30;
const minus = 0x2d;
const point = 0x2e;

/** Exact powers of ten in double precision. */
const powersOfTen = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);
/** Digits with which most float32 read back equal; ever fewer are tried while they do, one more when not. */
const usualDigits = 8;
/** Least power of ten that is written without an exponent, as in JavaScript. */
const leastPlainExponent = -6;
/** Longest text of one float32 below 1e16: sign, `0.`, 5 zeros, 9 digits. */
export const maxFloatBytes = 17;

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

  /**
   * Appends a number that reads back, as a double rounded to float32, to exactly `value`.
   * The caller has made sure that it is finite.
   */
  float32(value: number): this {
    this.#reserve(maxFloatBytes);
    const magnitude = Math.abs(value);
    if (magnitude === 0) return this.#byte(zero);
    if (value < 0) this.#byte(minus);
    const exponent = Math.floor(Math.log10(magnitude));
    let decimals = usualDigits - 1 - exponent;
    if (decimals < 1 || exponent < leastPlainExponent) return this.#rareFloat(magnitude);
    let scaled = scaleIfExact(magnitude, decimals);
    if (scaled === null) {
      decimals += 1;
      scaled = scaleIfExact(magnitude, decimals);
      if (scaled === null) return this.#rareFloat(magnitude);
    } else {
      while (decimals > 0) {
        const shorter = scaleIfExact(magnitude, decimals - 1);
        if (shorter === null) break;
        scaled = shorter;
        decimals -= 1;
      }
    }
    this.#decimal(scaled, decimals);
    return this;
  }

  /** Appends `[a,b,…]`. */
  float32List(values: Float32Array): this {
    this.#reserve(2 + values.length * (maxFloatBytes + 1));
    this.text('[');
    for (let index = 0; index < values.length; index += 1) {
      if (index > 0) this.#byte(0x2c);
      this.float32(values[index] ?? 0);
    }
    return this.text(']');
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

  /** Writes `scaled / 10^decimals`, digits from the right. */
  #decimal(scaled: number, decimals: number): void {
    let digits = 1;
    while (digits < powersOfTen.length && scaled >= (powersOfTen[digits] ?? Infinity)) digits += 1;
    const width = Math.max(digits, decimals + 1) + (decimals > 0 ? 1 : 0);
    let rest = scaled;
    for (let position = width - 1; position >= 0; position -= 1) {
      if (decimals > 0 && position === width - 1 - decimals) {
        this.#bytes[this.#length + position] = point;
      } else {
        this.#bytes[this.#length + position] = zero + (rest % 10);
        rest = Math.floor(rest / 10);
      }
    }
    this.#length += width;
  }

  /** Very large, very small and awkward values: the engine's own shortest form of as many digits as are needed. */
  #rareFloat(magnitude: number): this {
    for (let digits = 1; digits <= 9; digits += 1) {
      const candidate = Number(magnitude.toPrecision(digits));
      if (Math.fround(candidate) === magnitude) return this.text(String(candidate));
    }
    return this.text(String(magnitude));
  }

  #byte(code: number): this {
    this.#reserve(1);
    this.#bytes[this.#length] = code;
    this.#length += 1;
    return this;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + count));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

/** `magnitude x 10^decimals` as a whole number, or null where that does not read back equal. */
function scaleIfExact(magnitude: number, decimals: number): number | null {
  const power = powersOfTen[decimals] ?? Number.NaN;
  const scaled = Math.round(magnitude * power);
  return Math.fround(scaled / power) === magnitude ? scaled : null;
}
