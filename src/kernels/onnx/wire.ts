/** Owns the wire format of Protocol Buffers as far as a file must be walked without being loaded. */

/** Bytes that can be read piece by piece. */
export interface ByteSource {
  readonly byteLength: number;
  /** Exactly `length` bytes in a buffer that nobody writes to afterwards. */
  read(offset: number, length: number): Uint8Array;
}

/** Reads a source through a window. */
export interface WireReader {
  /** Throws where the source ends before `end`. */
  bytes(start: number, end: number): Uint8Array;
  /** The number at `position` and where it ends. */
  varint(position: number): { readonly value: number; readonly end: number };
}

/** One field of a message; its value is not read. */
export interface WireField {
  readonly number: number;
  /** Where its tag begins. */
  readonly start: number;
  /** Where its value begins, behind the length where it has one. */
  readonly valueStart: number;
  readonly end: number;
}

/** @unit bytes */
const windowBytes = 65_536;

/** Longest encoding of a number. @unit bytes */
const maxVarintBytes = 10;

const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** A reader over `source`. */
export function createWireReader(source: ByteSource): WireReader {
  let window: Uint8Array = new Uint8Array(0);
  let windowStart = 0;
  function bytes(start: number, end: number): Uint8Array {
    if (end > source.byteLength) throw new Error('the file ends in the middle of a field');
    if (start < windowStart || end > windowStart + window.byteLength) {
      if (end - start > windowBytes) return source.read(start, end - start);
      window = source.read(start, Math.min(windowBytes, source.byteLength - start));
      windowStart = start;
    }
    return window.subarray(start - windowStart, end - windowStart);
  }
  return {
    bytes,
    varint(position) {
      const encoded = bytes(position, Math.min(position + maxVarintBytes, source.byteLength));
      let value = 0;
      for (const [index, byte] of encoded.entries()) {
        value += (byte & 0x7f) * 2 ** (7 * index);
        if (byte < 0x80) return { value, end: position + index + 1 };
      }
      throw new Error('a number has no end');
    },
  };
}

function valuePlace(reader: WireReader, wireType: number, position: number): { valueStart: number; end: number } {
  switch (wireType) {
    case wireTypes.varint:
      return { valueStart: position, end: reader.varint(position).end };
    case wireTypes.fixed64:
      return { valueStart: position, end: position + 8 };
    case wireTypes.fixed32:
      return { valueStart: position, end: position + 4 };
    case wireTypes.bytes: {
      const length = reader.varint(position);
      return { valueStart: length.end, end: length.end + length.value };
    }
    default:
      throw new Error('a field has a form that ONNX does not use');
  }
}

/** The fields of the message between two places. Throws where they do not fill it exactly. */
export function* fieldsOf(reader: WireReader, start: number, end: number): Generator<WireField> {
  let position = start;
  while (position < end) {
    const tag = reader.varint(position);
    const place = valuePlace(reader, tag.value % 8, tag.end);
    if (place.end > end) throw new Error('a field is longer than the message that holds it');
    yield { number: Math.floor(tag.value / 8), start: position, ...place };
    position = place.end;
  }
}

/** A number as it is written. */
function encodeVarint(value: number): number[] {
  const encoded: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    encoded.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return [...encoded, rest];
}

/** All parts in one buffer. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
  let position = 0;
  for (const part of parts) {
    joined.set(part, position);
    position += part.byteLength;
  }
  return joined;
}

/** Tag and length of a field that holds `byteLength` bytes. */
export function bytesFieldHead(number: number, byteLength: number): Uint8Array {
  return Uint8Array.from([...encodeVarint(number * 8 + wireTypes.bytes), ...encodeVarint(byteLength)]);
}

/** A whole field that holds the parts, one behind the other. */
export function bytesField(number: number, parts: readonly Uint8Array[]): Uint8Array {
  const byteLength = parts.reduce((sum, part) => sum + part.byteLength, 0);
  return joinBytes([bytesFieldHead(number, byteLength), ...parts]);
}
