/** Owns the rewriting of the fused operator Attention, which not every execution provider can run with a mask. */
import { create } from '@bufbuild/protobuf';
import { TensorProtoSchema } from '../../kernels/onnx/onnx_pb.ts';
import type { NodeProto, TensorProto } from '../../kernels/onnx/onnx_pb.ts';
import { valuesOf } from './open-model.ts';
import type { OpenModel } from './open-model.ts';
import { dropUnused } from './drop-unused.ts';
import { attributeOf, contribDomain, createNames, makeNode, producersOf } from './make-node.ts';
import type { NextName } from './make-node.ts';
import { mapBytes } from './lazy-bytes.ts';
import type { LazyBytes } from './lazy-bytes.ts';
import { createMaskBias } from './mask-bias.ts';
import type { MaskBias } from './mask-bias.ts';
import { elementBytes } from './tensor-values.ts';

/** Inputs of Attention in their order. @source onnxruntime, ContribOperators.md, com.microsoft.Attention */
const inputs = { rows: 0, weights: 1, bias: 2, mask: 3, past: 4, attentionBias: 5, pastLength: 6 } as const;

/** Attributes that both operators have, with the same meaning. */
const keptAttributes: ReadonlySet<string> = new Set(['num_heads', 'scale', 'unidirectional']);

/** Columns `from` to `to` of a matrix, in bytes of its rows. */
function columnsOf(matrix: LazyBytes, rowBytes: number, from: number, to: number): LazyBytes {
  const rows = matrix.byteLength / rowBytes;
  return mapBytes(
    matrix,
    rows * (to - from),
    () => ({ column: 0 }),
    (chunk, state) => {
      const kept = new Uint8Array(chunk.byteLength);
      let length = 0;
      for (let position = 0; position < chunk.byteLength;) {
        const end = Math.min(chunk.byteLength, position + rowBytes - state.column);
        const first = position + Math.max(0, from - state.column);
        const last = Math.min(end, position + to - state.column);
        if (last > first) {
          kept.set(chunk.subarray(first, last), length);
          length += last - first;
        }
        state.column = (state.column + end - position) % rowBytes;
        position = end;
      }
      return kept.subarray(0, length);
    },
  );
}

const widthsOf = (node: NodeProto, columns: number): number[] =>
  attributeOf(node, 'qkv_hidden_sizes')?.ints.map(Number) ?? [columns / 3, columns / 3, columns / 3];

/** A part of packed weights as a constant of its own. */
function addPart(open: OpenModel, packed: TensorProto, from: number, to: number, nextName: NextName): string {
  const size = elementBytes(packed.dataType);
  const columns = Number(packed.dims.at(-1) ?? 0);
  const dims = [...packed.dims.slice(0, -1), BigInt(to - from)];
  const part = create(TensorProtoSchema, { name: nextName('part'), dataType: packed.dataType, dims });
  open.graph.initializer.push(part);
  open.values.set(part.name, columnsOf(valuesOf(open, packed), columns * size, from * size, to * size));
  return part.name;
}

interface Rewriting {
  readonly open: OpenModel;
  readonly nextName: NextName;
  readonly maskBias: MaskBias;
  readonly constants: ReadonlyMap<string, TensorProto>;
}

/** Nodes that give the queries, keys and values of an Attention node, and their names. */
function project({ open, nextName }: Rewriting, node: NodeProto, weights: TensorProto, bias: TensorProto | null) {
  const nodes: NodeProto[] = [];
  const rows = node.input[inputs.rows] ?? '';
  let from = 0;
  const names = widthsOf(node, Number(weights.dims[1] ?? 0)).map((width) => {
    const part = addPart(open, weights, from, from + width, nextName);
    const product = nextName('product');
    nodes.push(makeNode('MatMul', [rows, part], [product]));
    const biasPart = bias === null ? null : addPart(open, bias, from, from + width, nextName);
    from += width;
    if (biasPart === null) return product;
    const sum = nextName('sum');
    nodes.push(makeNode('Add', [product, biasPart], [sum]));
    return sum;
  });
  return { nodes, names };
}

/** What takes the node's place; null where it does something that the other operator is not known to do alike. */
function rewrite(rewriting: Rewriting, node: NodeProto): NodeProto[] | null {
  const nameAt = (position: number): string => node.input[position] ?? '';
  const weights = rewriting.constants.get(nameAt(inputs.weights));
  const bias = rewriting.constants.get(nameAt(inputs.bias)) ?? null;
  const hasRotary = (attributeOf(node, 'do_rotary')?.i ?? 0n) !== 0n;
  const hasPast = nameAt(inputs.past) !== '' || nameAt(inputs.pastLength) !== '' || node.output.length > 1;
  const isBiasUnknown = nameAt(inputs.bias) !== '' && bias === null;
  if (weights === undefined || hasRotary || hasPast || isBiasUnknown) return null;
  const filter = attributeOf(node, 'mask_filter_value')?.f ?? -10_000;
  const mask = nameAt(inputs.mask);
  const made =
    mask === '' ? { nodes: [], name: '' } : rewriting.maskBias(mask, nameAt(inputs.rows), weights.dataType, filter);
  if (made === null) return null;
  const { nodes, names } = project(rewriting, node, weights, bias);
  const own = nameAt(inputs.attentionBias);
  const both = rewriting.nextName('attention_bias');
  const needsSum = own !== '' && made.name !== '';
  const attentionBias = needsSum ? both : own === '' ? made.name : own;
  const operands = [...names, '', '', attentionBias];
  return [
    ...made.nodes,
    ...nodes,
    ...(needsSum ? [makeNode('Add', [made.name, own], [both])] : []),
    makeNode(
      'MultiHeadAttention',
      attentionBias === '' ? names : operands,
      node.output.slice(0, 1),
      node.attribute.filter(({ name }) => keptAttributes.has(name)),
      contribDomain,
    ),
  ];
}

/**
 * Replaces each Attention node by three projections and MultiHeadAttention, whose mask is a bias on the products.
 * A node with a cache of past tokens, rotation, or a mask of another form stays as it is.
 */
export function expandAttention(open: OpenModel): void {
  const { graph } = open;
  const nextName = createNames(graph, 'trivec_attention');
  const constants = new Map(graph.initializer.map((tensor) => [tensor.name, tensor] as const));
  const maskBias = createMaskBias(open, producersOf(graph), nextName);
  const rewriting = { open, nextName, maskBias, constants };
  graph.node = graph.node.flatMap((node) =>
    node.opType === 'Attention' && node.domain === contribDomain ? (rewrite(rewriting, node) ?? [node]) : [node],
  );
  dropUnused(open);
}
