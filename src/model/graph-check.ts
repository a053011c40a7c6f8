/** Owns the check of a graph against its heads: whether each has an output to start from, and all inputs can be fed. */
import { elementTypes } from '../kernels/onnx/builder.ts';
import { minOpset } from '../kernels/onnx/operators.ts';
import type { GraphDescription, GraphValue } from '../kernels/onnx/read.ts';
import { headSource, holdsFloats, wantedOutputs } from './head-source.ts';
import type { GraphHead, SourceFacts } from './head-source.ts';
import { pastInputs } from './past-inputs.ts';

/** Inputs that an executor feeds. */
const fedInputs = ['input_ids', 'attention_mask', 'token_type_ids', 'position_ids'];

/** Start of every name that the heads add. */
const ownPrefix = 'trivec_';

/** An output as it is shown in a message, such as `logits [batch, 1]`. */
export function showOutput({ name, shape }: GraphValue): string {
  return shape === null ? name : `${name} [${shape.join(', ')}]`;
}

/** All outputs of a graph as they are shown in a message. */
export const showOutputs = ({ outputs }: GraphDescription): string => outputs.map(showOutput).join('; ');

/** What keeps a head from being added to a graph; nothing where it can be. */
function headProblems(graph: GraphDescription, head: GraphHead, facts: SourceFacts): string[] {
  if (headSource(graph, head, facts) !== null) return [];
  const all = wantedOutputs(head, facts);
  const wanted = all.find(({ mayHaveAnyName }) => mayHaveAnyName) ?? all[0];
  if (wanted === undefined) throw new Error(`nothing is known of head ${head}`);
  const shape = `[${wanted.shape.join(', ')}]`;
  const named = graph.outputs.find(({ name }) => wanted.names.includes(name));
  if (named === undefined) {
    const names = wanted.names.slice(0, 2).join(' or ');
    return [`has no output ${names} and not one output of the shape ${shape}, only: ${showOutputs(graph)}`];
  }
  return holdsFloats(named)
    ? [`output ${showOutput(named)} should be ${shape}`]
    : [`output ${named.name} holds neither float32 nor float16`];
}

/** Everything that keeps a graph from being served with these heads; nothing where it can be. */
export function graphProblems(graph: GraphDescription, heads: readonly GraphHead[], facts: SourceFacts): string[] {
  const past = pastInputs(graph).map(({ name }) => name);
  const unknown = graph.inputs
    .map(({ name }) => name)
    .filter((name) => !fedInputs.includes(name) && !past.includes(name));
  const hasIds = graph.inputs.some(({ name }) => name === 'input_ids');
  const notInt64 = graph.inputs.filter(
    ({ name, elementType }) => fedInputs.includes(name) && elementType !== elementTypes.int64,
  );
  const taken = graph.outputs.filter(({ name }) => name.startsWith(ownPrefix));
  return [
    ...(hasIds ? [] : ['has no input input_ids']),
    ...(unknown.length === 0 ? [] : [`asks for inputs that are not known: ${unknown.join(', ')}`]),
    ...notInt64.map(({ name }) => `input ${name} is not int64`),
    ...(graph.opset >= minOpset
      ? []
      : [`is written in operator set ${String(graph.opset)}, at least ${String(minOpset)} is needed`]),
    ...taken.map(({ name }) => `has an output ${name} already: use the original file`),
    ...new Set(heads.flatMap((head) => headProblems(graph, head, facts))),
  ];
}
