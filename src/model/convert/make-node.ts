/** Owns the making of nodes and names that conversions add to a graph. */
import { create } from '@bufbuild/protobuf';
import { AttributeProtoSchema, NodeProtoSchema } from '../../kernels/onnx/onnx_pb.ts';
import type { AttributeProto, GraphProto, NodeProto } from '../../kernels/onnx/onnx_pb.ts';

/** Domain of the operators that onnxruntime adds to the standard. */
export const contribDomain = 'com.microsoft';

/** ONNX number of the attribute type INT. */
const attributeInt = 2;
/** ONNX number of the attribute type INTS. */
const attributeInts = 7;
/** ONNX number of the attribute type FLOAT. */
const attributeFloat = 1;
/** ONNX number of the attribute type GRAPH. */
const attributeGraph = 5;

/** A whole number, or a list of them, as an attribute. */
export const intAttribute = (name: string, value: number | readonly number[]): AttributeProto =>
  typeof value === 'number'
    ? create(AttributeProtoSchema, { name, type: attributeInt, i: BigInt(value) })
    : create(AttributeProtoSchema, { name, type: attributeInts, ints: value.map(BigInt) });

/** A number with a fraction as an attribute. */
export const floatAttribute = (name: string, value: number): AttributeProto =>
  create(AttributeProtoSchema, { name, type: attributeFloat, f: value });

/** A graph as an attribute, such as a branch of an If. */
export const graphAttribute = (name: string, graph: GraphProto): AttributeProto =>
  create(AttributeProtoSchema, { name, type: attributeGraph, g: graph });

/** A node, without a name of its own: names need not be there, but must differ where they are. */
export const makeNode = (
  opType: string,
  input: readonly string[],
  output: readonly string[],
  attribute: readonly AttributeProto[] = [],
  domain = '',
): NodeProto =>
  create(NodeProtoSchema, {
    opType,
    input: [...input],
    output: [...output],
    attribute: [...attribute],
    domain,
  });

/** Makes names that no tensor of the graph has. */
export type NextName = (label: string) => string;

/** Names for what a conversion adds; `prefix` is the conversion's own. */
export function createNames(graph: GraphProto, prefix: string): NextName {
  const taken = new Set([
    ...graph.initializer.map(({ name }) => name),
    ...graph.input.map(({ name }) => name),
    ...graph.node.flatMap(({ output }) => output),
  ]);
  let count = 0;
  return (label) => {
    let name = '';
    do name = `${prefix}_${String(count++)}_${label}`;
    while (taken.has(name));
    return name;
  };
}

/** The attribute of a node; null where it has none of that name. */
export const attributeOf = ({ attribute }: NodeProto, name: string): AttributeProto | null =>
  attribute.find((one) => one.name === name) ?? null;

/** Whether a node is the standard operator of that name. */
export const isStandard = ({ domain, opType }: NodeProto, name: string): boolean =>
  opType === name && (domain === '' || domain === 'ai.onnx');

/** The node that makes each tensor. */
export const producersOf = ({ node }: GraphProto): Map<string, NodeProto> =>
  new Map(node.flatMap((one) => one.output.filter((name) => name !== '').map((name) => [name, one] as const)));

/** The nodes that read each tensor. */
export function consumersOf({ node }: GraphProto): Map<string, NodeProto[]> {
  const consumers = new Map<string, NodeProto[]>();
  for (const one of node) {
    for (const name of new Set(one.input)) consumers.set(name, [...(consumers.get(name) ?? []), one]);
  }
  return consumers;
}
