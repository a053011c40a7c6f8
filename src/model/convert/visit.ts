/** Owns walking over all graphs, nodes and constants of a model, whatever holds them. */
import type { GraphProto, ModelProto, NodeProto, TensorProto } from '../../kernels/onnx/onnx_pb.ts';

/** The graphs inside a node: the branches of an If, the body of a Loop. */
const innerGraphs = (node: NodeProto): GraphProto[] =>
  node.attribute.flatMap(({ g, graphs }) => (g === undefined ? graphs : [g, ...graphs]));

/** Whether a node holds graphs of its own. */
export const hasInnerGraph = (node: NodeProto): boolean => innerGraphs(node).length > 0;

const graphsWithin = (nodes: readonly NodeProto[]): GraphProto[] =>
  nodes.flatMap(innerGraphs).flatMap((graph) => [graph, ...graphsWithin(graph.node)]);

/** Every graph of a model, the outer one first. */
export function graphsOf({ graph, functions }: ModelProto): GraphProto[] {
  const outer = graph === undefined ? [] : [graph];
  return [...outer, ...graphsWithin([...outer, ...functions].flatMap(({ node }) => node))];
}

/** Every node of a model, those of its functions too. */
export const nodesOf = (model: ModelProto): NodeProto[] =>
  [...graphsOf(model), ...model.functions].flatMap(({ node }) => node);

/** Constants that are attributes of nodes. */
export const attributeTensors = (nodes: readonly NodeProto[]): TensorProto[] =>
  nodes.flatMap((node) => node.attribute.flatMap(({ t }) => (t === undefined ? [] : [t])));
