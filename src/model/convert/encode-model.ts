/** Owns the writing of an open model as files, its weights streamed. */
import { clearField, create, toBinary } from '@bufbuild/protobuf';
import {
  GraphProtoSchema,
  ModelProtoSchema,
  StringEntryProtoSchema,
  TensorProtoSchema,
} from '../../kernels/onnx/onnx_pb.ts';
import type { TensorProto } from '../../kernels/onnx/onnx_pb.ts';
import { externalLocation } from '../../kernels/onnx/read.ts';
import { bytesFieldHead, joinBytes } from '../../kernels/onnx/wire.ts';
import { concatBytes, memoryBytes } from './lazy-bytes.ts';
import type { LazyBytes } from './lazy-bytes.ts';
import type { OpenModel } from './open-model.ts';
import { clearValues } from './tensor-values.ts';

/** Field numbers of ONNX that are written by hand, because what they hold is not in memory. */
const fieldNumbers = { graph: 7, initializer: 5, rawData: 9 } as const;

/** Most bytes of a file with all weights inside; readers of the format stop at 2 GiB. @unit bytes */
export const maxInlineBytes = 2_000_000_000;

/** Values in a data file begin at a multiple of this, as memory pages do. @unit bytes */
const dataAlignment = 4096;

/** A model as it is written. */
export interface EncodedModel {
  readonly graphFile: LazyBytes;
  /** Weights that do not fit into the graph's file; null where all do. */
  readonly dataFile: LazyBytes | null;
}

/** How a model is written. */
export interface EncodeOptions {
  /** Name of the data file, beside the graph's file, where one is needed. */
  readonly dataFileName: string;
  readonly maxInlineBytes: number;
}

/** The parts of a field that holds a tensor whose values are made while they are written. */
function tensorField(tensor: TensorProto, values: LazyBytes): LazyBytes[] {
  const head = toBinary(TensorProtoSchema, tensor);
  const valuesHead = bytesFieldHead(fieldNumbers.rawData, values.byteLength);
  const byteLength = head.byteLength + valuesHead.byteLength + values.byteLength;
  return [memoryBytes(joinBytes([bytesFieldHead(fieldNumbers.initializer, byteLength), head, valuesHead])), values];
}

/** The graph's file: all that is in memory, then the tensors with the values given for them. */
function encodeGraphFile({ model, graph }: OpenModel, valuesInside: ReadonlyMap<TensorProto, LazyBytes>): LazyBytes {
  const inMemory = graph.initializer.filter((tensor) => !valuesInside.has(tensor));
  const small = toBinary(GraphProtoSchema, { ...graph, initializer: inMemory });
  const tensors = [...valuesInside].flatMap(([tensor, values]) => tensorField(tensor, values));
  const content = concatBytes([memoryBytes(small), ...tensors]);
  const outer = { ...model };
  clearField(outer, ModelProtoSchema.field.graph);
  const head = [toBinary(ModelProtoSchema, outer), bytesFieldHead(fieldNumbers.graph, content.byteLength)];
  return concatBytes([memoryBytes(joinBytes(head)), content]);
}

/** Says in a tensor where its values are. */
export function setPlace(tensor: TensorProto, location: string, offset: number, byteLength: number): void {
  const entries = { location, offset: String(offset), length: String(byteLength) };
  tensor.externalData = Object.entries(entries).map(([key, value]) => create(StringEntryProtoSchema, { key, value }));
  tensor.dataLocation = externalLocation;
}

/** The model with values moved out of the graph's file. */
function encodeApart(open: OpenModel, dataFileName: string): EncodedModel {
  const parts: LazyBytes[] = [];
  let position = 0;
  for (const tensor of open.graph.initializer) {
    const values = open.values.get(tensor.name);
    if (values === undefined) continue;
    setPlace(tensor, dataFileName, position, values.byteLength);
    const gap = -values.byteLength & (dataAlignment - 1);
    parts.push(values, memoryBytes(new Uint8Array(gap)));
    position += values.byteLength + gap;
  }
  return { graphFile: encodeGraphFile(open, new Map()), dataFile: concatBytes(parts) };
}

/** The model as it now is, in one file where it fits into one, complete without any other file. */
export function encodeModel(open: OpenModel, { dataFileName, maxInlineBytes: limit }: EncodeOptions): EncodedModel {
  const inside = new Map<TensorProto, LazyBytes>();
  for (const tensor of open.graph.initializer) {
    const values = open.values.get(tensor.name);
    if (values === undefined) continue;
    clearValues(tensor);
    inside.set(tensor, values);
  }
  const graphFile = encodeGraphFile(open, inside);
  return graphFile.byteLength <= limit ? { graphFile, dataFile: null } : encodeApart(open, dataFileName);
}

/** The graph's file with what is in other files still there, under the names that `nameOf` gives them. */
export function encodeWithExternal(open: OpenModel, nameOf: (location: string) => string): LazyBytes {
  const inside = new Map<TensorProto, LazyBytes>();
  for (const tensor of open.graph.initializer) {
    const place = open.external.get(tensor.name);
    const values = open.values.get(tensor.name);
    if (place !== undefined) setPlace(tensor, nameOf(place.location), place.offset, place.byteLength);
    else if (values !== undefined) inside.set(tensor, values);
  }
  return encodeGraphFile(open, inside);
}
