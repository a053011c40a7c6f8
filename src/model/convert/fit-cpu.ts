/** Owns the form of a float32 graph that a CPU runs fastest: fused operators with slow kernels are written out. */
import type { NodeProto } from '../../kernels/onnx/onnx_pb.ts';
import { attributeOf, contribDomain, createNames, floatAttribute, makeNode } from './make-node.ts';
import type { NextName } from './make-node.ts';
import type { OpenModel } from './open-model.ts';
import { createOptionalBias } from './optional-bias.ts';

/** Operators of `contribDomain` for which a CPU has something faster; each in its form for float32. */
const slowOperators = ['SkipLayerNormalization', 'BiasGelu', 'MultiHeadAttention'] as const;

/** Whether a graph with these operators has a faster form on a CPU. */
export const isSlowOnCpu = (operators: ReadonlySet<string>): boolean =>
  slowOperators.some((operator) => operators.has(operator));

/**
 * Add and LayerNormalization, of which the fused kernel takes several times as long; null where more is read of it.
 * @source onnxruntime, ContribOperators.md, com.microsoft.SkipLayerNormalization
 */
function splitSkipLayerNorm(node: NodeProto, nextName: NextName): NodeProto[] | null {
  const [rows = '', skip = '', scale = '', shift = '', bias = ''] = node.input;
  const [output = '', mean = '', deviation = '', ownSum = ''] = node.output;
  if (mean !== '' || deviation !== '') return null;
  const biased = bias === '' ? rows : nextName('biased');
  const sum = ownSum === '' ? nextName('sum') : ownSum;
  const epsilon = attributeOf(node, 'epsilon');
  return [
    ...(bias === '' ? [] : [makeNode('Add', [rows, bias], [biased])]),
    makeNode('Add', [biased, skip], [sum]),
    makeNode(
      'LayerNormalization',
      shift === '' ? [sum, scale] : [sum, scale, shift],
      [output],
      epsilon === null ? [floatAttribute('epsilon', defaultEpsilon)] : [epsilon],
    ),
  ];
}

/** What SkipLayerNormalization adds to the variance where it does not say; LayerNormalization has another default. */
const defaultEpsilon = 1e-12;

/** Add and Gelu, whose kernel is vectorised and exact as well. */
function splitBiasGelu(node: NodeProto, nextName: NextName): NodeProto[] {
  const sum = nextName('sum');
  return [makeNode('Add', node.input, [sum]), makeNode('Gelu', [sum], node.output, [], contribDomain)];
}

/**
 * Writes out what a CPU computes faster in parts, and lets attention pass over a bias of zeros, which every run of
 * texts of one length has. Inputs, outputs and, up to rounding, values stay.
 */
export function fitCpu(open: OpenModel): void {
  const { graph } = open;
  const nextName = createNames(graph, 'trivec_cpu');
  const withOptionalBias = createOptionalBias(graph, nextName);
  const rewrite = (node: NodeProto): NodeProto[] | null => {
    if (node.domain !== contribDomain) return null;
    switch (node.opType) {
      case 'SkipLayerNormalization':
        return splitSkipLayerNorm(node, nextName);
      case 'BiasGelu':
        return splitBiasGelu(node, nextName);
      case 'MultiHeadAttention':
        return withOptionalBias(node);
      default:
        return null;
    }
  };
  graph.node = graph.node.flatMap((node) => rewrite(node) ?? [node]);
}
