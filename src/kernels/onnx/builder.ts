/** Owns the building of small ONNX graphs: nodes, constants, inputs and outputs, each with a name of its own. */
import { create } from '@bufbuild/protobuf';
import {
  AttributeProtoSchema,
  GraphProtoSchema,
  NodeProtoSchema,
  TensorProtoSchema,
  ValueInfoProtoSchema,
} from './onnx_pb.ts';
import type { AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto } from './onnx_pb.ts';

/** ONNX numbers of the element types that are read or made. */
export const elementTypes = { float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9, float16: 10 } as const;

/** ONNX numbers of the attribute types that the kernels use. */
const attributeTypes = { int: 2, ints: 7 } as const;

/** Value of a node attribute: whole numbers become INT or INTS. */
export type AttributeValue = number | readonly number[];

/** Each dimension is a length or the name of a free one. */
export type Shape = readonly (number | string)[];

/** A graph under construction; every method that makes a tensor returns its name. */
export interface GraphBuilder {
  /** Version of the standard operator set that the nodes must be valid in. */
  readonly opset: number;
  /** Adds a node with one output. */
  node(opType: string, inputs: readonly string[], attributes?: Readonly<Record<string, AttributeValue>>): string;
  /** Adds a node with several outputs; their names in order. */
  nodes(
    opType: string,
    inputs: readonly string[],
    outputCount: number,
    attributes?: Readonly<Record<string, AttributeValue>>,
  ): string[];
  /** Adds a float32 constant. */
  floats(values: ArrayLike<number>, dims?: readonly number[]): string;
  /** Adds an int64 constant. */
  ints(values: readonly number[], dims?: readonly number[]): string;
  /** Gives an input of the graph that this is added to a default without a single value in it. */
  emptyDefault(name: string, elementType: number, dims: readonly number[]): void;
  /** Declares an input of the graph. */
  input(name: string, elementType: number, shape: Shape): string;
  /** Makes `tensor`, or what the last operator makes of it, a float32 output of the graph under the name `name`. */
  output(name: string, tensor: string, shape: Shape, lastOperator?: string): void;
  /** The graph with all that was added. */
  build(): GraphProto;
}

function encodeAttribute(name: string, value: AttributeValue): AttributeProto {
  return typeof value === 'number'
    ? create(AttributeProtoSchema, { name, type: attributeTypes.int, i: BigInt(value) })
    : create(AttributeProtoSchema, { name, type: attributeTypes.ints, ints: value.map(BigInt) });
}

function describeValue(name: string, elementType: number, shape: Shape): ValueInfoProto {
  const dim = shape.map((length) => ({
    value:
      typeof length === 'number'
        ? { case: 'dimValue' as const, value: BigInt(length) }
        : { case: 'dimParam' as const, value: length },
  }));
  return create(ValueInfoProtoSchema, { name, type: { tensorType: { elemType: elementType, shape: { dim } } } });
}

/** Little-endian bytes of the values, whatever the machine. */
function encodeValues(values: ArrayLike<number>, dataType: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * (dataType === elementTypes.int64 ? 8 : 4)));
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? 0;
    if (dataType === elementTypes.int64) view.setBigInt64(index * 8, BigInt(value), true);
    else view.setFloat32(index * 4, value, true);
  }
  return new Uint8Array(view.buffer);
}

/** An empty graph whose nodes and tensors are named `<prefix>_<number>`, so that they meet no others. */
export function createGraphBuilder(opset: number, prefix = 'trivec'): GraphBuilder {
  const nodes: NodeProto[] = [];
  const initializers: TensorProto[] = [];
  const inputs: ValueInfoProto[] = [];
  const outputs: ValueInfoProto[] = [];
  let count = 0;
  const nextName = (label: string): string => `${prefix}_${String(count++)}_${label}`;
  const addNode = (
    opType: string,
    from: readonly string[],
    to: readonly string[],
    attribute: AttributeProto[],
  ): void => {
    nodes.push(create(NodeProtoSchema, { opType, name: to[0] ?? '', input: [...from], output: [...to], attribute }));
  };
  const encodeAttributes = (attributes: Readonly<Record<string, AttributeValue>>): AttributeProto[] =>
    Object.entries(attributes).map(([key, value]) => encodeAttribute(key, value));
  const addConstant = (values: ArrayLike<number>, dims: readonly number[], dataType: number): string => {
    const name = nextName('constant');
    const rawData = encodeValues(values, dataType);
    initializers.push(create(TensorProtoSchema, { name, dataType, dims: dims.map(BigInt), rawData }));
    return name;
  };
  return {
    opset,
    node(opType, from, attributes = {}) {
      const name = nextName(opType);
      addNode(opType, from, [name], encodeAttributes(attributes));
      return name;
    },
    nodes(opType, from, outputCount, attributes = {}) {
      const names = Array.from({ length: outputCount }, () => nextName(opType));
      addNode(opType, from, names, encodeAttributes(attributes));
      return names;
    },
    floats: (values, dims = [values.length]) => addConstant(values, dims, elementTypes.float32),
    ints: (values, dims = [values.length]) => addConstant(values, dims, elementTypes.int64),
    emptyDefault(name, dataType, dims) {
      const rawData = new Uint8Array(0);
      initializers.push(create(TensorProtoSchema, { name, dataType, dims: dims.map(BigInt), rawData }));
    },
    input(name, elementType, shape) {
      inputs.push(describeValue(name, elementType, shape));
      return name;
    },
    output(name, tensor, shape, lastOperator = 'Identity') {
      addNode(lastOperator, [tensor], [name], []);
      outputs.push(describeValue(name, elementTypes.float32, shape));
    },
    build: () => create(GraphProtoSchema, { node: nodes, initializer: initializers, input: inputs, output: outputs }),
  };
}
