/** Owns taking out of a graph what a conversion has left without a reader. */
import type { GraphProto } from '../../kernels/onnx/onnx_pb.ts';
import { forgetValues } from './open-model.ts';
import type { OpenModel } from './open-model.ts';

/** Every name that a graph, or one inside it, reads. */
const namesRead = (graph: GraphProto): string[] => [
  ...graph.output.map(({ name }) => name),
  ...graph.node.flatMap(({ input, attribute }) => [
    ...input,
    ...attribute.flatMap(({ g, graphs }) => (g === undefined ? graphs : [g, ...graphs])).flatMap(namesRead),
  ]),
];

/** Operators that stand between a constant and its reader. */
const constantOperators: ReadonlySet<string> = new Set(['Constant', 'Identity', 'Transpose']);

/** Takes nodes away until each that is left is read, or computes. */
function dropNodes(graph: GraphProto): void {
  for (;;) {
    const used = new Set(namesRead(graph));
    const kept = graph.node.filter(
      ({ opType, output }) => !constantOperators.has(opType) || output.some((name) => used.has(name)),
    );
    if (kept.length === graph.node.length) return;
    graph.node = kept;
  }
}

/** Takes away the constants that nothing reads any more; an initialiser may be declared as an input too. */
export function dropUnused(open: OpenModel): void {
  const { graph } = open;
  dropNodes(graph);
  const used = new Set(namesRead(graph));
  const unused = new Set(graph.initializer.filter(({ name }) => !used.has(name)));
  const names = new Set([...unused].map(({ name }) => name));
  for (const tensor of unused) forgetValues(open, tensor);
  graph.initializer = graph.initializer.filter((tensor) => !unused.has(tensor));
  graph.input = graph.input.filter(({ name }) => !names.has(name));
}
