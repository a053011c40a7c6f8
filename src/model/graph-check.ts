/** Owns the check of a graph against its role: which output is read, and whether all inputs can be fed. */
import { elementTypes } from '../kernels/onnx/builder.ts';
import { minOpset } from '../kernels/onnx/operators.ts';
import type { GraphDescription, GraphValue } from '../kernels/onnx/read.ts';
import { headOutputs } from '../executor/protocol.ts';
import type { ModelRole } from './role.ts';

/** Inputs that an executor feeds. */
const fedInputs = ['input_ids', 'attention_mask', 'token_type_ids'];

/** Names under which exporters write the output that each role reads. */
const outputNames: Readonly<Record<ModelRole, readonly string[]>> = {
  encoder: ['last_hidden_state', 'token_embeddings'],
  maskedLanguageModel: ['logits'],
  crossEncoder: ['logits'],
};

/** Sizes that decide how wide an output must be. */
export interface ExpectedWidths {
  readonly hiddenSize: number;
  readonly vocabularySize: number;
}

/** An output as it is shown in a message, such as `logits [batch, 1]`. */
export function showOutput({ name, shape }: GraphValue): string {
  return shape === null ? name : `${name} [${shape.join(', ')}]`;
}

/** All outputs of a graph as they are shown in a message. */
export const showOutputs = ({ outputs }: GraphDescription): string => outputs.map(showOutput).join('; ');

/** The output that a role reads; null where the graph has none of its names. */
export function sourceOutput(graph: GraphDescription, role: ModelRole): GraphValue | null {
  return graph.outputs.find(({ name }) => outputNames[role].includes(name)) ?? null;
}

function expectedShape(role: ModelRole, { hiddenSize, vocabularySize }: ExpectedWidths): (number | string)[] {
  if (role === 'crossEncoder') return ['batch', 1];
  return ['batch', 'sequence', role === 'encoder' ? hiddenSize : vocabularySize];
}

/** A dimension that the file leaves free fits every length. */
function hasShape(output: GraphValue, expected: readonly (number | string)[]): boolean {
  if (output.shape === null) return true;
  const width = output.shape.at(-1);
  const expectedWidth = expected.at(-1);
  return output.shape.length === expected.length && (typeof width !== 'number' || width === expectedWidth);
}

function outputProblems(graph: GraphDescription, role: ModelRole, widths: ExpectedWidths): string[] {
  const output = sourceOutput(graph, role);
  if (output === null) {
    return [`has no output ${outputNames[role].join(' or ')}, only: ${showOutputs(graph)}`];
  }
  const expected = expectedShape(role, widths);
  const isFloat = [0, elementTypes.float32, elementTypes.float16].includes(output.elementType);
  return [
    ...(hasShape(output, expected) ? [] : [`output ${showOutput(output)} should be [${expected.join(', ')}]`]),
    ...(isFloat ? [] : [`output ${output.name} holds neither float32 nor float16`]),
  ];
}

/** Everything that keeps a graph from being served in its role; nothing where it can be. */
export function graphProblems(graph: GraphDescription, role: ModelRole, widths: ExpectedWidths): string[] {
  const unknown = graph.inputs.map(({ name }) => name).filter((name) => !fedInputs.includes(name));
  const hasIds = graph.inputs.some(({ name }) => name === 'input_ids');
  const notInt64 = graph.inputs.filter(
    ({ name, elementType }) => fedInputs.includes(name) && elementType !== elementTypes.int64,
  );
  const ownOutputs: readonly string[] = Object.values(headOutputs);
  const taken = graph.outputs.filter(({ name }) => ownOutputs.includes(name));
  return [
    ...(hasIds ? [] : ['has no input input_ids']),
    ...(unknown.length === 0 ? [] : [`asks for inputs that are not known: ${unknown.join(', ')}`]),
    ...notInt64.map(({ name }) => `input ${name} is not int64`),
    ...(graph.opset >= minOpset
      ? []
      : [`is written in operator set ${String(graph.opset)}, at least ${String(minOpset)} is needed`]),
    ...(graph.externalFiles.length === 0
      ? []
      : [`keeps its weights in other files (${graph.externalFiles.join(', ')}), which is not supported`]),
    ...taken.map(({ name }) => `has an output ${name} already: use the original file`),
    ...outputProblems(graph, role, widths),
  ];
}
