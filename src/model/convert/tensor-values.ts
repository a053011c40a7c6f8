/** Owns the values of tensors that lie in a graph itself: as bytes, whatever field holds them. */
import { clearField, create } from '@bufbuild/protobuf';
import { TensorProtoSchema } from '../../kernels/onnx/onnx_pb.ts';
import type { TensorProto } from '../../kernels/onnx/onnx_pb.ts';

/** Bytes of one element, by the ONNX number of its type. @source onnx.proto, TensorProto.DataType */
const sizes: ReadonlyMap<number, number> = new Map([
  [1, 4],
  [2, 1],
  [3, 1],
  [4, 2],
  [5, 2],
  [6, 4],
  [7, 8],
  [9, 1],
  [10, 2],
  [11, 8],
  [12, 4],
  [13, 8],
  [16, 2],
]);

/** Bytes of one element of a type; 0 for types without a fixed size in whole bytes. */
export const elementBytes = (dataType: number): number => sizes.get(dataType) ?? 0;

/** Number of elements. */
export const elementCount = ({ dims }: TensorProto): number =>
  dims.reduce((product, length) => product * Number(length), 1);

/** Values of a tensor in the graph, as `raw_data` would hold them. */
export function smallValues(tensor: TensorProto): Uint8Array {
  if (tensor.floatData.length > 0) return bytesOf(Float32Array.from(tensor.floatData));
  if (tensor.int64Data.length > 0) return bytesOf(BigInt64Array.from(tensor.int64Data));
  if (tensor.int32Data.length > 0) {
    const size = elementBytes(tensor.dataType);
    const all = Int32Array.from(tensor.int32Data);
    return bytesOf(size === 1 ? Uint8Array.from(all) : size === 2 ? Uint16Array.from(all) : all);
  }
  return tensor.rawData;
}

/** The bytes of a typed array. */
export const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** Bytes as 16-bit numbers; a copy where they do not begin at an even place. */
export function halvesOf(bytes: Uint8Array): Uint16Array {
  const aligned = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
  return new Uint16Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / 2);
}

/** Bytes as float32; a copy where they do not begin at a multiple of four. */
export function floatsOf(bytes: Uint8Array): Float32Array {
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new Float32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / 4);
}

/** Puts values of a type into a tensor of the graph. */
export function setSmallValues(tensor: TensorProto, dataType: number, bytes: Uint8Array): void {
  tensor.dataType = dataType;
  tensor.floatData = [];
  tensor.int32Data = [];
  tensor.int64Data = [];
  tensor.rawData = bytes;
}

/** A tensor of the graph with these values. */
export const smallTensor = (
  name: string,
  dims: readonly number[],
  dataType: number,
  values: ArrayBufferView,
): TensorProto => create(TensorProtoSchema, { name, dims: dims.map(BigInt), dataType, rawData: bytesOf(values) });

/** Takes the values out of a tensor, so that it is written as a head alone. */
export function clearValues(tensor: TensorProto): void {
  setSmallValues(tensor, tensor.dataType, new Uint8Array(0));
  clearField(tensor, TensorProtoSchema.field.rawData);
  tensor.externalData = [];
  clearField(tensor, TensorProtoSchema.field.dataLocation);
}
