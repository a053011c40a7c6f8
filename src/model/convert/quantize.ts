/** Owns the int8 form of a graph: products with constant weights in whole numbers, everything else in float32. */
import { create } from '@bufbuild/protobuf';
import { elementTypes } from '../../kernels/onnx/builder.ts';
import { TensorProtoSchema } from '../../kernels/onnx/onnx_pb.ts';
import type { NodeProto, TensorProto } from '../../kernels/onnx/onnx_pb.ts';
import { dropUnused } from './drop-unused.ts';
import { quantizeWeights } from './int8-weights.ts';
import { attributeOf, createNames, intAttribute, isStandard, makeNode, producersOf } from './make-node.ts';
import type { NextName } from './make-node.ts';
import { valuesOf } from './open-model.ts';
import type { OpenModel } from './open-model.ts';

/** Fewer output channels, as a classifier's labels, are not worth an error. */
const minChannels = 8;

/** The constant factor of a product. */
interface Factor {
  readonly tensor: TensorProto;
  /** Whether the product reads it transposed. */
  readonly isTransposed: boolean;
}

interface Quantizing {
  readonly open: OpenModel;
  readonly nextName: NextName;
  readonly producers: ReadonlyMap<string, NodeProto>;
  readonly constants: ReadonlyMap<string, TensorProto>;
  /** Quantised activations, by the name of the float32 ones: products of the same rows share them. */
  readonly activations: Map<string, readonly [values: string, scale: string, zeroPoint: string]>;
  /** Quantised weights, by name and direction. */
  readonly weights: Map<string, readonly [values: string, scales: string]>;
}

/** The constant matrix that a name stands for, through a Transpose of two axes; null for anything else. */
function factorOf({ producers, constants }: Pick<Quantizing, 'producers' | 'constants'>, name: string): Factor | null {
  const tensor = constants.get(name) ?? constantOf(producers.get(name));
  if (tensor?.dataType === elementTypes.float32 && tensor.dims.length === 2) return { tensor, isTransposed: false };
  const producer = producers.get(name);
  if (producer === undefined || !isStandard(producer, 'Transpose')) return null;
  const inner = factorOf({ producers, constants }, producer.input[0] ?? '');
  const permutation = attributeOf(producer, 'perm')?.ints.map(Number) ?? [1, 0];
  return inner === null || permutation[0] === 0 ? inner : { ...inner, isTransposed: !inner.isTransposed };
}

/** The tensor of a Constant node, under the node's name for it. */
function constantOf(node: NodeProto | undefined): TensorProto | undefined {
  if (node === undefined || !isStandard(node, 'Constant')) return undefined;
  const tensor = attributeOf(node, 'value')?.t;
  // The initialiser that takes its values gets a name of its own, so this one is for look-ups only.
  return tensor === undefined ? undefined : { ...tensor, name: node.output[0] ?? '' };
}

/** Whether the node is a Gemm that multiplies and adds, and does nothing else. */
function isPlainGemm(node: NodeProto): boolean {
  const isOne = (name: string): boolean => (attributeOf(node, name)?.f ?? 1) === 1;
  return (attributeOf(node, 'transA')?.i ?? 0n) === 0n && isOne('alpha') && isOne('beta');
}

/** The quantised weights as constants: whole numbers in the direction of the product, and a scale for each column. */
function addWeights(quantizing: Quantizing, factor: Factor, nodes: NodeProto[]): readonly [string, string] {
  const { open, nextName, weights } = quantizing;
  const { tensor, isTransposed } = factor;
  const key = `${String(isTransposed)} ${tensor.name}`;
  const known = weights.get(key);
  if (known !== undefined) return known;
  const [rows = 0, columns = 0] = tensor.dims.map(Number);
  const made = quantizeWeights({ values: valuesOf(open, tensor), rows, columns, isByRow: isTransposed });
  const add = (label: string, dataType: number, dims: readonly bigint[], values: typeof made.values): string => {
    const name = nextName(label);
    open.graph.initializer.push(create(TensorProtoSchema, { name, dataType, dims: [...dims] }));
    open.values.set(name, values);
    return name;
  };
  const stored = add('weights', elementTypes.int8, tensor.dims, made.values);
  const channels = BigInt(isTransposed ? rows : columns);
  const scales = add('scales', elementTypes.float32, [channels], made.scales);
  const directed = isTransposed ? nextName('transposed') : stored;
  if (isTransposed) nodes.push(makeNode('Transpose', [stored], [directed], [intAttribute('perm', [1, 0])]));
  weights.set(key, [directed, scales]);
  return [directed, scales];
}

function addActivations({ nextName, activations }: Quantizing, rows: string, nodes: NodeProto[]) {
  const known = activations.get(rows);
  if (known !== undefined) return known;
  const made = [nextName('rows'), nextName('scale'), nextName('zero')] as const;
  nodes.push(makeNode('DynamicQuantizeLinear', [rows], made));
  activations.set(rows, made);
  return made;
}

/** What takes a product's place; the node itself where it has no constant factor worth it. */
function quantizeProduct(quantizing: Quantizing, node: NodeProto): NodeProto[] {
  const isGemm = isStandard(node, 'Gemm') && isPlainGemm(node);
  if (!isGemm && !isStandard(node, 'MatMul')) return [node];
  const [rows = '', weightName = '', bias = ''] = node.input;
  const found = factorOf(quantizing, weightName);
  if (found === null) return [node];
  const isFlipped = isGemm && (attributeOf(node, 'transB')?.i ?? 0n) === 1n;
  const factor = isFlipped ? { ...found, isTransposed: !found.isTransposed } : found;
  const channels = Number(factor.tensor.dims[factor.isTransposed ? 0 : 1] ?? 0);
  if (channels < minChannels) return [node];
  const { nextName } = quantizing;
  const nodes: NodeProto[] = [];
  const [values, scale, zeroPoint] = addActivations(quantizing, rows, nodes);
  const [weights, scales] = addWeights(quantizing, factor, nodes);
  const [sums, floats, factors] = [nextName('sums'), nextName('floats'), nextName('factors')];
  const product = bias === '' ? (node.output[0] ?? '') : nextName('product');
  nodes.push(
    makeNode('MatMulInteger', [values, weights, zeroPoint], [sums]),
    makeNode('Cast', [sums], [floats], [intAttribute('to', elementTypes.float32)]),
    makeNode('Mul', [scale, scales], [factors]),
    makeNode('Mul', [floats, factors], [product]),
  );
  if (bias !== '') nodes.push(makeNode('Add', [product, bias], node.output));
  return nodes;
}

/**
 * Makes each product with a constant matrix one of whole numbers: weights once, per output channel; rows in each run.
 * Products of two computed matrices, as in attention, stay in float32.
 */
export function quantize(open: OpenModel): void {
  const { graph } = open;
  const quantizing: Quantizing = {
    open,
    nextName: createNames(graph, 'trivec_int8'),
    producers: producersOf(graph),
    constants: new Map(graph.initializer.map((tensor) => [tensor.name, tensor] as const)),
    activations: new Map(),
    weights: new Map(),
  };
  graph.node = graph.node.flatMap((node) => quantizeProduct(quantizing, node));
  dropUnused(open);
}
