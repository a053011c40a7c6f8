/** Owns the reading of an ONNX file without its weights: they stay where they are, known by their place. */
import { fromBinary } from '@bufbuild/protobuf';
import { ModelProtoSchema } from './onnx_pb.ts';
import type { ModelProto, TensorProto } from './onnx_pb.ts';
import { bytesField, createWireReader, fieldsOf, joinBytes } from './wire.ts';
import type { ByteSource, WireField, WireReader } from './wire.ts';

/** Values of fewer bytes are part of the skeleton, where conversions can look at them. @unit bytes */
const minOutsideBytes = 1024;

/** Numbers of the fields on the way to a tensor's values. */
const fieldNumbers = { graph: 7, initializer: 5, rawData: 9 } as const;

/** A stretch of a file. */
export interface ByteRange {
  /** @unit bytes */
  readonly offset: number;
  /** @unit bytes */
  readonly length: number;
}

/** A model whose large initialisers have no `rawData`. */
export interface ModelSkeleton {
  readonly model: ModelProto;
  /** Where the values of those initialisers lie in the file. */
  readonly ranges: ReadonlyMap<TensorProto, ByteRange>;
}

/** The tensor without its values where they are large, and their place. */
function splitTensor(reader: WireReader, tensor: WireField): { bytes: Uint8Array; range: ByteRange | null } {
  const isSmall = tensor.end - tensor.valueStart < minOutsideBytes;
  if (isSmall) return { bytes: reader.bytes(tensor.start, tensor.end), range: null };
  const header: Uint8Array[] = [];
  let range: ByteRange | null = null;
  for (const field of fieldsOf(reader, tensor.valueStart, tensor.end)) {
    const length = field.end - field.valueStart;
    if (field.number === fieldNumbers.rawData && length >= minOutsideBytes) {
      range = { offset: field.valueStart, length };
    } else {
      header.push(reader.bytes(field.start, field.end));
    }
  }
  return { bytes: bytesField(fieldNumbers.initializer, header), range };
}

/**
 * The model in `source` without its weights; every other byte is kept, declared or not.
 * Throws where the bytes are no complete ONNX model.
 */
export function readSkeleton(source: ByteSource): ModelSkeleton {
  const reader = createWireReader(source);
  const outer: Uint8Array[] = [];
  const inner: Uint8Array[] = [];
  const places: (ByteRange | null)[] = [];
  for (const field of fieldsOf(reader, 0, source.byteLength)) {
    if (field.number !== fieldNumbers.graph) {
      outer.push(reader.bytes(field.start, field.end));
      continue;
    }
    // A graph may come in several pieces, which readers of the format merge.
    for (const part of fieldsOf(reader, field.valueStart, field.end)) {
      if (part.number !== fieldNumbers.initializer) {
        inner.push(reader.bytes(part.start, part.end));
        continue;
      }
      const { bytes, range } = splitTensor(reader, part);
      inner.push(bytes);
      places.push(range);
    }
  }
  const model = fromBinary(ModelProtoSchema, joinBytes([...outer, bytesField(fieldNumbers.graph, inner)]));
  const tensors = model.graph?.initializer ?? [];
  const ranges = new Map<TensorProto, ByteRange>();
  for (const [index, tensor] of tensors.entries()) {
    const range = places[index];
    if (range !== undefined && range !== null) ranges.set(tensor, range);
  }
  return { model, ranges };
}
