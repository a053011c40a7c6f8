/** Owns attention that reads its bias only in runs where there is something in it. */
import { create } from '@bufbuild/protobuf';
import { elementTypes } from '../../kernels/onnx/builder.ts';
import { GraphProtoSchema } from '../../kernels/onnx/onnx_pb.ts';
import type { GraphProto, NodeProto } from '../../kernels/onnx/onnx_pb.ts';
import { graphAttribute, intAttribute, makeNode } from './make-node.ts';
import type { NextName } from './make-node.ts';
import { valueTypes } from './value-types.ts';

/** Inputs of the operator in their order. @source onnxruntime, ContribOperators.md, com.microsoft.MultiHeadAttention */
const inputs = { ownBias: 3, paddingMask: 4, attentionBias: 5 } as const;

/** What takes an attention's place; null where it has no bias, or a mask or a cache besides. */
export type OptionalBias = (node: NodeProto) => NodeProto[] | null;

/** A way of the node as the only one of a graph, which reads everything from the graph around it. */
function branch(node: NodeProto, input: readonly string[], output: string): GraphProto {
  const tensorType = { elemType: elementTypes.float32 };
  return create(GraphProtoSchema, {
    name: output,
    node: [makeNode(node.opType, input, [output], node.attribute, node.domain)],
    output: [{ name: output, type: { tensorType } }],
  });
}

/**
 * A maker of attention with two ways: past the bias where all of it is zero, on which the engine has a kernel that never
 * holds the products of a text with itself, else with it. Whether it is zero is found once for all layers that share it.
 */
export function createOptionalBias(graph: GraphProto, nextName: NextName): OptionalBias {
  const types = valueTypes(graph);
  const conditions = new Map<string, string>();

  function conditionOf(bias: string): { readonly nodes: readonly NodeProto[]; readonly name: string } {
    const known = conditions.get(bias);
    if (known !== undefined) return { nodes: [], name: known };
    const [sizes, largest, isAny, isNone] = [nextName('sizes'), nextName('largest'), nextName('any'), nextName('none')];
    conditions.set(bias, isNone);
    const nodes = [
      makeNode('Abs', [bias], [sizes]),
      makeNode('ReduceMax', [sizes], [largest], [intAttribute('keepdims', 0)]),
      makeNode('Cast', [largest], [isAny], [intAttribute('to', elementTypes.bool)]),
      makeNode('Not', [isAny], [isNone]),
    ];
    return { nodes, name: isNone };
  }

  return (node) => {
    const [output = '', ...others] = node.output;
    const bias = node.input[inputs.attentionBias] ?? '';
    const hasMore = [...node.input.slice(inputs.attentionBias + 1), ...others].some((name) => name !== '');
    const isMasked = (node.input[inputs.paddingMask] ?? '') !== '';
    if (bias === '' || isMasked || hasMore || types.get(output) !== elementTypes.float32) return null;
    const hasOwnBias = (node.input[inputs.ownBias] ?? '') !== '';
    const plain = node.input.slice(0, hasOwnBias ? inputs.ownBias + 1 : inputs.ownBias);
    const condition = conditionOf(bias);
    const ways = [
      graphAttribute('then_branch', branch(node, plain, nextName('plain'))),
      graphAttribute('else_branch', branch(node, node.input, nextName('biased'))),
    ];
    return [...condition.nodes, makeNode('If', [condition.name], [output], ways)];
  };
}
