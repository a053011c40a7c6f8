/** Owns a model that is open for a change: its graph in memory, its weights still where they lie. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { dirname, isAbsolute, join, normalize, sep } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import type { GraphProto, ModelProto, TensorProto } from '../../kernels/onnx/onnx_pb.ts';
import { externalLocation } from '../../kernels/onnx/read.ts';
import { readSkeleton } from '../../kernels/onnx/skeleton.ts';
import type { ModelSkeleton } from '../../kernels/onnx/skeleton.ts';
import type { ByteSource } from '../../kernels/onnx/wire.ts';
import { fileErrorCode } from '../json-file.ts';
import { fileBytes, memoryBytes } from './lazy-bytes.ts';
import type { LazyBytes } from './lazy-bytes.ts';
import { attributeTensors, graphsOf, nodesOf } from './visit.ts';
import { clearValues, elementBytes, elementCount, smallValues } from './tensor-values.ts';

/** Where a tensor lies that is not in the graph's file. */
export interface ExternalPlace {
  /** As the graph names it: relative to the graph's folder. */
  readonly location: string;
  readonly path: string;
  readonly offset: number;
  readonly byteLength: number;
}

/** A graph that conversions change in place; nobody else holds it. */
export interface OpenModel {
  readonly path: string;
  readonly model: ModelProto;
  readonly graph: GraphProto;
  /** Values of the initialisers that are not in `graph`, by name. */
  readonly values: Map<string, LazyBytes>;
  /** Those of them that lie in other files, as long as no conversion has replaced them. */
  readonly external: Map<string, ExternalPlace>;
}

function sourceOf(file: number): ByteSource {
  return {
    byteLength: fstatSync(file).size,
    read(offset, length) {
      const bytes = new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const count = readSync(file, bytes, done, length - done, offset + done);
        if (count === 0) throw new Error('the file became shorter while it was read');
        done += count;
      }
      return bytes;
    },
  };
}

function readSkeletonOf(path: string): ModelSkeleton {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    throw new ConfigurationError([`${path}: cannot be read (${fileErrorCode(error)})`]);
  }
  try {
    return readSkeleton(sourceOf(file));
  } catch {
    const size = String(fstatSync(file).size);
    throw new ConfigurationError([
      `${path}: is no complete ONNX model (${size} bytes): cut off or damaged, get it again`,
    ]);
  } finally {
    closeSync(file);
  }
}

/** A file outside the model's folder is nothing that a model may name. */
function pathOfLocation(graphPath: string, location: string): string {
  const relative = normalize(location);
  if (location === '' || isAbsolute(relative) || relative === '..' || relative.startsWith(`..${sep}`)) {
    throw new ConfigurationError([`${graphPath}: keeps weights in "${location}", which is not in its own folder`]);
  }
  return join(dirname(graphPath), relative);
}

function placeOf(graphPath: string, tensor: TensorProto): ExternalPlace {
  const entry = (key: string): string => tensor.externalData.find((one) => one.key === key)?.value ?? '';
  const location = entry('location');
  const stated = entry('length');
  const place = {
    location,
    path: pathOfLocation(graphPath, location),
    offset: Number(entry('offset')),
    byteLength: stated === '' ? elementCount(tensor) * elementBytes(tensor.dataType) : Number(stated),
  };
  if ([place.offset, place.byteLength].every((size) => Number.isSafeInteger(size) && size >= 0)) return place;
  throw new ConfigurationError([`${graphPath}: says of ${tensor.name} no possible place in "${location}"`]);
}

/** Values of nodes and inner graphs are part of the graph's file in every export; elsewhere they would not be found. */
function refuseInnerExternal({ path, model, graph }: Pick<OpenModel, 'path' | 'model' | 'graph'>): void {
  const inner = graphsOf(model).filter((one) => one !== graph);
  const tensors = [...inner.flatMap(({ initializer }) => initializer), ...attributeTensors(nodesOf(model))];
  if (!tensors.some(({ dataLocation }) => dataLocation === externalLocation)) return;
  throw new ConfigurationError([`${path}: keeps a value of a node in another file, which is not supported`]);
}

/**
 * The model in a file, its weights not loaded.
 * @throws ConfigurationError naming the file where it is cut off, no ONNX model, or names files outside its folder
 */
export function openModel(path: string): OpenModel {
  const { model, ranges } = readSkeletonOf(path);
  const { graph } = model;
  if (graph === undefined) throw new ConfigurationError([`${path}: is no complete ONNX model: it has no graph`]);
  refuseInnerExternal({ path, model, graph });
  const values = new Map<string, LazyBytes>();
  const external = new Map<string, ExternalPlace>();
  for (const [{ name }, { offset, length }] of ranges) values.set(name, fileBytes(path, offset, length));
  for (const tensor of graph.initializer) {
    if (tensor.dataLocation !== externalLocation) continue;
    const place = placeOf(path, tensor);
    external.set(tensor.name, place);
    values.set(tensor.name, fileBytes(place.path, place.offset, place.byteLength));
  }
  return { path, model, graph, values, external };
}

/** The values of an initialiser, wherever they are. */
export const valuesOf = ({ values }: OpenModel, tensor: TensorProto): LazyBytes =>
  values.get(tensor.name) ?? memoryBytes(smallValues(tensor));

/** Gives an initialiser other values, of its element type and shape. */
export function replaceValues(open: OpenModel, tensor: TensorProto, values: LazyBytes): void {
  forgetValues(open, tensor);
  open.values.set(tensor.name, values);
}

/** Takes an initialiser's values away, wherever they are. */
export function forgetValues({ values, external }: OpenModel, tensor: TensorProto): void {
  values.delete(tensor.name);
  external.delete(tensor.name);
  clearValues(tensor);
}
