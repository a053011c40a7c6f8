/** Owns the reading of what an ONNX file says about itself: inputs, outputs, operator set. */
import { fromBinary } from '@bufbuild/protobuf';
import { elementTypes } from './builder.ts';
import { ModelProtoSchema } from './onnx_pb.ts';
import type { GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto } from './onnx_pb.ts';
import type { Shape } from './builder.ts';
import { tableRowsOf } from './tables.ts';
import type { TableRows } from './tables.ts';

/** ONNX number that says a tensor's values lie in another file. */
export const externalLocation = 1;

/** An input or output of a graph. */
export interface GraphValue {
  readonly name: string;
  /** ONNX number of the element type; 0 where the file does not say. */
  readonly elementType: number;
  /** null where the file does not say. */
  readonly shape: Shape | null;
}

/** What a graph offers and asks for. */
export interface GraphDescription {
  /** Version of the standard operator set. */
  readonly opset: number;
  /** What must be fed: inputs that are not constants. */
  readonly inputs: readonly GraphValue[];
  readonly outputs: readonly GraphValue[];
  /** Files that hold tensors outside the graph file, relative to it. */
  readonly externalFiles: readonly string[];
  /** Kinds of the operators that occur, those inside control flow left out. */
  readonly operators: ReadonlySet<string>;
  /** Type of most of its weights; null where it has none of either. */
  readonly weightType: 'float32' | 'float16' | null;
  readonly tableRows: TableRows;
  /** Whether it defines operators of its own. */
  readonly hasFunctions: boolean;
  /** For each output that is a Sigmoid of something, up to type and shape: the tensor that enters the Sigmoid. */
  readonly sigmoidInputs: ReadonlyMap<string, string>;
}

function readValue(value: ValueInfoProto): GraphValue {
  const tensor = value.type?.tensorType;
  const shape = tensor?.shape?.dim.map(({ value: length }) =>
    length.case === 'dimValue' ? Number(length.value) : (length.value ?? '?'),
  );
  return { name: value.name, elementType: tensor?.elemType ?? 0, shape: shape ?? null };
}

function externalFilesOf(graph: GraphProto): string[] {
  const constants = graph.node.flatMap((node) => node.attribute.flatMap(({ t }) => (t === undefined ? [] : [t])));
  const isExternal = (tensor: TensorProto): boolean => tensor.dataLocation === externalLocation;
  const locations = [...graph.initializer, ...constants]
    .filter(isExternal)
    .map((tensor) => tensor.externalData.find(({ key }) => key === 'location')?.value ?? 'an unnamed file');
  return [...new Set(locations)];
}

/** Number of weights of one type. */
const countWeights = ({ initializer }: GraphProto, elementType: number): number =>
  initializer
    .filter(({ dataType }) => dataType === elementType)
    .reduce((sum, { dims }) => sum + dims.reduce((product, length) => product * Number(length), 1), 0);

function weightTypeOf(graph: GraphProto): GraphDescription['weightType'] {
  const [wide, half] = [countWeights(graph, elementTypes.float32), countWeights(graph, elementTypes.float16)];
  if (wide === 0 && half === 0) return null;
  return half > wide ? 'float16' : 'float32';
}

/** Operators that change the type or shape of their first input, never a value. */
const reformOperators = new Set(['Cast', 'Flatten', 'Identity', 'Reshape', 'Squeeze', 'Unsqueeze']);

/** The tensor that enters the Sigmoid which an output comes from; null where it comes from something else. */
function sigmoidInputOf(output: string, producers: ReadonlyMap<string, NodeProto>): string | null {
  let producer = producers.get(output);
  while (producer !== undefined && reformOperators.has(producer.opType)) {
    producer = producers.get(producer.input[0] ?? '');
  }
  return producer?.opType === 'Sigmoid' ? (producer.input[0] ?? null) : null;
}

/**
 * What the graph in `bytes` says about itself. Throws where the bytes are no complete ONNX model.
 */
export const describeGraph = (bytes: Uint8Array): GraphDescription =>
  describeModel(fromBinary(ModelProtoSchema, bytes, { readUnknownFields: false }));

/**
 * What the graph of a model says about itself; the values of its constants are not looked at.
 * Throws where it has no outputs or no operator set.
 */
export function describeModel(model: ModelProto): GraphDescription {
  const opset = model.opsetImport.find(({ domain }) => domain === '' || domain === 'ai.onnx')?.version;
  const { graph } = model;
  if (graph === undefined || graph.output.length === 0 || opset === undefined) {
    throw new Error('no graph with outputs and an operator set');
  }
  const constants = new Set(graph.initializer.map(({ name }) => name));
  const producers = new Map(graph.node.flatMap((node) => node.output.map((name) => [name, node] as const)));
  const sigmoidInputs = graph.output.flatMap(({ name }) => {
    const input = sigmoidInputOf(name, producers);
    return input === null ? [] : [[name, input] as const];
  });
  return {
    opset: Number(opset),
    inputs: graph.input.filter(({ name }) => !constants.has(name)).map(readValue),
    outputs: graph.output.map(readValue),
    externalFiles: externalFilesOf(graph),
    operators: new Set(graph.node.map(({ opType }) => opType)),
    weightType: weightTypeOf(graph),
    tableRows: tableRowsOf(graph),
    hasFunctions: model.functions.length > 0,
    sigmoidInputs: new Map(sigmoidInputs),
  };
}
