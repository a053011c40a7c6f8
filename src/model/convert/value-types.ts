/** Owns the element type of every tensor of a graph, found from its constants, inputs and operators. */
import { elementTypes } from '../../kernels/onnx/builder.ts';
import type { GraphProto, NodeProto } from '../../kernels/onnx/onnx_pb.ts';
import { attributeOf } from './make-node.ts';
import { innerGraphs } from './visit.ts';

const { bool, float32, int32, int64, uint8 } = elementTypes;

/** Operators whose result has one type, whatever they read. @source ONNX operators */
const fixedTypes: Readonly<Record<string, readonly number[]>> = {
  Shape: [int64],
  Size: [int64],
  NonZero: [int64],
  ArgMax: [int64],
  ArgMin: [int64],
  Equal: [bool],
  Greater: [bool],
  GreaterOrEqual: [bool],
  Less: [bool],
  LessOrEqual: [bool],
  And: [bool],
  Or: [bool],
  Xor: [bool],
  Not: [bool],
  IsNaN: [bool],
  IsInf: [bool],
  DynamicQuantizeLinear: [uint8, float32, uint8],
  MatMulInteger: [int32],
  ConvInteger: [int32],
};

/** Operators whose result has the type of another input than the first: its position. */
const typeInputs: Readonly<Record<string, number>> = {
  Where: 1,
  CastLike: 1,
  DequantizeLinear: 1,
  OneHot: 2,
  EmbedLayerNormalization: 2,
};

type Types = Map<string, number>;

/** What the graph inside a node gives; a Loop's own condition is no output of the node. */
function typesMadeInside(node: NodeProto, inner: GraphProto, types: Types): readonly number[] {
  const found = valueTypes(inner, types);
  const made = inner.output.map(({ name, type }) => type?.tensorType?.elemType ?? found.get(name) ?? 0);
  return node.opType === 'Loop' ? made.slice(1) : made;
}

function typesMadeBy(node: NodeProto, types: Types): readonly number[] {
  const [inner] = innerGraphs(node);
  if (inner !== undefined) return typesMadeInside(node, inner, types);
  const named = attributeOf(node, 'to') ?? attributeOf(node, 'dtype');
  if (named !== null) return [Number(named.i)];
  const value = attributeOf(node, 'value')?.t;
  if (value !== undefined) return [value.dataType];
  const fixed = fixedTypes[node.opType];
  if (fixed !== undefined) return fixed;
  if (node.opType === 'ConstantOfShape') return [float32];
  if (node.opType === 'Constant') return [attributeOf(node, 'value_float') === null ? int64 : float32];
  const type = types.get(node.input[typeInputs[node.opType] ?? 0] ?? '') ?? 0;
  if (node.opType === 'TopK') return [type, int64];
  if (node.opType === 'EmbedLayerNormalization') return [type, int32, type];
  return node.output.map(() => type);
}

/** ONNX number of the element type of every named tensor, those of the graphs around it too; 0 where it cannot be told. */
export function valueTypes(
  graph: GraphProto,
  outer: ReadonlyMap<string, number> = new Map(),
): ReadonlyMap<string, number> {
  const types: Types = new Map(outer);
  for (const { name, dataType } of graph.initializer) types.set(name, dataType);
  for (const { name, type } of graph.input) {
    if (!types.has(name)) types.set(name, type?.tensorType?.elemType ?? 0);
  }
  for (const node of graph.node) {
    const made = typesMadeBy(node, types);
    for (const [index, name] of node.output.entries()) types.set(name, made[index] ?? 0);
  }
  return types;
}
