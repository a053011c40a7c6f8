/** Owns the narrowing of a graph from float32 to float16, for devices that compute in it. */
import { ConfigurationError } from '../../errors.ts';
import { elementTypes } from '../../kernels/onnx/builder.ts';
import { TensorProtoSchema, AttributeProtoSchema } from '../../kernels/onnx/onnx_pb.ts';
import type { NodeProto, TensorProto } from '../../kernels/onnx/onnx_pb.ts';
import { create } from '@bufbuild/protobuf';
import { narrowFloats } from './half.ts';
import { mapBytes } from './lazy-bytes.ts';
import { attributeOf, consumersOf, createNames, intAttribute, isStandard, makeNode, producersOf } from './make-node.ts';
import type { NextName } from './make-node.ts';
import { replaceValues } from './open-model.ts';
import type { OpenModel } from './open-model.ts';
import { bytesOf, floatsOf, setSmallValues, smallValues } from './tensor-values.ts';
import { valueTypes } from './value-types.ts';
import { capturedNames, innerGraphs, renameCaptured } from './visit.ts';

const { float16, float32 } = elementTypes;

/**
 * Operators that stay in float32: sums and squares leave the range of float16, small constants vanish in it, and
 * quantised operators have their own rules. LayerNormalization is not among them: it sums in float32 by definition.
 */
const wideOperators: ReadonlySet<string> = new Set([
  ...['Exp', 'Log', 'LogSoftmax', 'LpNormalization', 'Pow', 'Reciprocal', 'Softmax', 'Sqrt'],
  ...['CumSum', 'Range', 'ReduceL1', 'ReduceL2', 'ReduceLogSumExp', 'ReduceMean', 'ReduceSum', 'ReduceSumSquare'],
  ...['DequantizeLinear', 'DynamicQuantizeLinear', 'MatMulNBits', 'QuantizeLinear'],
  ...['RandomNormal', 'RandomUniform', 'Resize'],
]);

/** Operators that stay in float32 between two that do, such as the addition of epsilon in a normalisation. */
const linkOperators: ReadonlySet<string> = new Set(['Add', 'Clip', 'Div', 'Max', 'Mul', 'Sub']);

/** Operators whose argument grows with the place in the text: float16 cannot tell far places apart. */
const placeOperators: ReadonlySet<string> = new Set(['Cos', 'Sin']);

/** The nodes that stay in float32. */
function wideNodes({ graph }: OpenModel, isFloat: (name: string) => boolean): ReadonlySet<NodeProto> {
  const producers = producersOf(graph);
  const consumers = consumersOf(graph);
  const isWide = (node: NodeProto | undefined): boolean => node !== undefined && wideOperators.has(node.opType);
  const isLink = (node: NodeProto): boolean => {
    const readers = node.output.flatMap((name) => consumers.get(name) ?? []);
    const isFed = node.input.some((name) => isWide(producers.get(name)));
    return linkOperators.has(node.opType) && isFed && readers.length > 0 && readers.every(isWide);
  };
  // What a branch or a loop holds stays as it is.
  const hasInner = (node: NodeProto): boolean => innerGraphs(node).length > 0;
  const wide = new Set(graph.node.filter((node) => isWide(node) || isLink(node) || hasInner(node)));
  const pending = graph.node.filter(({ opType }) => placeOperators.has(opType));
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    wide.add(node);
    const before = node.input.filter(isFloat).map((name) => producers.get(name));
    pending.push(...before.filter((one) => one !== undefined).filter((one) => !wide.has(one)));
  }
  return wide;
}

const narrowBytes = (bytes: Uint8Array): Uint8Array => bytesOf(narrowFloats(floatsOf(bytes)));

function narrowInitializer(open: OpenModel, tensor: TensorProto): void {
  const values = open.values.get(tensor.name);
  if (values === undefined) {
    setSmallValues(tensor, float16, narrowBytes(smallValues(tensor)));
    return;
  }
  replaceValues(
    open,
    tensor,
    mapBytes(values, values.byteLength / 2, () => null, narrowBytes),
  );
  tensor.dataType = float16;
}

/** Makes a node give float16 where it names a type or holds a value itself. */
function narrowAttributes(node: NodeProto): void {
  for (const name of ['to', 'dtype']) {
    const named = attributeOf(node, name);
    if (named?.i === BigInt(float32)) named.i = BigInt(float16);
  }
  const value = attributeOf(node, 'value')?.t;
  if (value?.dataType === float32) setSmallValues(value, float16, narrowBytes(smallValues(value)));
  const single = attributeOf(node, 'value_float');
  const isZeros = isStandard(node, 'ConstantOfShape') && value === undefined;
  if (single === null && !isZeros) return;
  const t = create(TensorProtoSchema, {
    dims: single === null ? [1n] : [],
    dataType: float16,
    rawData: bytesOf(narrowFloats(Float32Array.of(single?.f ?? 0))),
  });
  node.attribute = [create(AttributeProtoSchema, { name: 'value', type: 4, t })];
}

/** The graph while it is narrowed: the type that each float tensor now has. */
interface Narrowing {
  readonly stored: Map<string, number>;
  readonly casts: Map<string, string>;
  readonly nextName: NextName;
}

/** The name under which a float tensor can be read in the wanted type; a conversion is added where none is there yet. */
function readAs({ stored, casts, nextName }: Narrowing, name: string, wanted: number, nodes: NodeProto[]): string {
  const type = stored.get(name);
  if (type === undefined || type === wanted) return name;
  const key = `${String(wanted)} ${name}`;
  const known = casts.get(key);
  if (known !== undefined) return known;
  const made = nextName('cast');
  nodes.push(makeNode('Cast', [name], [made], [intAttribute('to', wanted)]));
  casts.set(key, made);
  return made;
}

function refuseFunctions({ path, model }: OpenModel): void {
  if (model.functions.length === 0) return;
  throw new ConfigurationError([
    `${path}: holds local functions, so it cannot be narrowed to fp16; use --precision fp32`,
  ]);
}

/** Repeats the type of each constant where the graph declares it as an input too. */
function declareConstants({ graph }: OpenModel, stored: ReadonlyMap<string, number>): void {
  for (const { name, type } of graph.input) {
    const isNarrow = stored.get(name) === float16;
    if (isNarrow && type?.tensorType !== undefined) type.tensorType.elemType = float16;
  }
}

/** Gives each output the type and name that it had, whatever the graph computes in. */
function restoreOutputs(open: OpenModel, { stored, nextName }: Narrowing): void {
  const { graph } = open;
  for (const { name } of graph.output) {
    if (stored.get(name) !== float16) continue;
    const inside = nextName('output');
    const rename = (one: string): string => (one === name ? inside : one);
    for (const node of graph.node) {
      node.input = node.input.map(rename);
      node.output = node.output.map(rename);
    }
    graph.node.push(makeNode('Cast', [inside], [name], [intAttribute('to', float32)]));
  }
}

/**
 * Makes weights and products float16, weights clamped to its range. Inputs, outputs and what a sum or a square would
 * carry out of the range stay float32, with conversions between; so does all that is inside a branch or a loop.
 * @throws ConfigurationError where the graph defines operators of its own
 */
export function narrow(open: OpenModel): void {
  refuseFunctions(open);
  const { graph } = open;
  const types = valueTypes(graph);
  const isFloat = (name: string): boolean => types.get(name) === float32;
  const wide = wideNodes(open, isFloat);
  const readWide = new Set([...wide].flatMap((node) => [...node.input, ...capturedNames(node)]));
  const narrowing: Narrowing = { stored: new Map(), casts: new Map(), nextName: createNames(graph, 'trivec_half') };
  const { stored } = narrowing;
  for (const { name } of graph.input) {
    if (isFloat(name)) stored.set(name, float32);
  }
  for (const tensor of graph.initializer) {
    if (tensor.dataType !== float32) continue;
    // What both kinds of nodes read stays as it is: a conversion for the one costs nothing after loading.
    const isWide = readWide.has(tensor.name);
    if (!isWide) narrowInitializer(open, tensor);
    stored.set(tensor.name, isWide ? float32 : float16);
  }
  declareConstants(open, stored);
  graph.node = graph.node.flatMap((node) => {
    const floatOutputs = node.output.filter(isFloat);
    // A constant that a node in float32 reads keeps its digits.
    const isKept = wide.has(node) || (node.opType === 'Constant' && node.output.some((name) => readWide.has(name)));
    const wanted = isKept ? float32 : float16;
    const nodes: NodeProto[] = [];
    // A Cast reads either type, and on its way to a whole number a value must not be rounded.
    if (!isStandard(node, 'Cast')) node.input = node.input.map((name) => readAs(narrowing, name, wanted, nodes));
    renameCaptured(node, new Map(capturedNames(node).map((name) => [name, readAs(narrowing, name, float32, nodes)])));
    if (!isKept && floatOutputs.length > 0) narrowAttributes(node);
    for (const name of floatOutputs) stored.set(name, wanted);
    return [...nodes, node];
  });
  graph.valueInfo = graph.valueInfo.filter(({ name }) => !isFloat(name));
  restoreOutputs(open, narrowing);
}
