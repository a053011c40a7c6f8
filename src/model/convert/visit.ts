/** Owns walking over all graphs, nodes and constants of a model, whatever holds them. */
import type { GraphProto, ModelProto, NodeProto, TensorProto } from '../../kernels/onnx/onnx_pb.ts';

/** The graphs inside a node: the branches of an If, the body of a Loop. */
export const innerGraphs = (node: NodeProto): GraphProto[] =>
  node.attribute.flatMap(({ g, graphs }) => (g === undefined ? graphs : [g, ...graphs]));

/** Names that a graph defines itself. */
const ownNames = ({ initializer, input, node }: GraphProto): string[] => [
  ...[...initializer, ...input].map(({ name }) => name),
  ...node.flatMap(({ output }) => output),
];

/** Tensors of the graph around a node that the graphs inside it read, each once. */
export function capturedNames(node: NodeProto): string[] {
  const captured = innerGraphs(node).flatMap((graph) => {
    const own = new Set(ownNames(graph));
    const read = graph.node.flatMap((inner) => [...inner.input, ...capturedNames(inner)]);
    return [...read, ...graph.output.map(({ name }) => name)].filter((name) => name !== '' && !own.has(name));
  });
  return [...new Set(captured)];
}

/** Makes the graphs inside a node read other tensors of the graph around it; none of their own has such a name. */
export function renameCaptured(node: NodeProto, names: ReadonlyMap<string, string>): void {
  const rename = (name: string): string => names.get(name) ?? name;
  for (const graph of innerGraphs(node)) {
    for (const inner of graph.node) {
      inner.input = inner.input.map(rename);
      renameCaptured(inner, names);
    }
    for (const output of graph.output) output.name = rename(output.name);
  }
}

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
