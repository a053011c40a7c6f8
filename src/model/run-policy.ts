/** Owns what a graph allows in one run: which texts may share it, and at which lengths. */
import type { RunPolicy } from '../executor/protocol.ts';
import type { GraphDescription } from '../kernels/onnx/read.ts';
import { pastInputs } from './past-inputs.ts';

/** Operators that take one scale for all texts of a run, so that a text's values change with its companions. */
const batchScaled = /^(?:DynamicQuantize|QAttention$|MatMulIntegerToFloat$)/u;

/** Whether the graph quantises its activations while it runs. */
export const isDynamicallyQuantized = ({ operators }: Pick<GraphDescription, 'operators'>): boolean =>
  [...operators].some((operator) => batchScaled.test(operator));

/** What the graph allows in one run. */
export function runPolicyOf(graph: Pick<GraphDescription, 'inputs' | 'operators'>): RunPolicy {
  const [batch, tokens] = graph.inputs.find(({ name }) => name === 'input_ids')?.shape ?? [];
  const fixedBatch = typeof batch === 'number' && batch > 0 ? batch : null;
  const fixedTokens = typeof tokens === 'number' && tokens > 0 ? tokens : null;
  const hasMask = graph.inputs.some(({ name }) => name === 'attention_mask');
  // The empty default of a decoder's cache is one text's.
  const isSingle = fixedBatch === 1 || pastInputs(graph).length > 0;
  const kind = isSingle || isDynamicallyQuantized(graph) ? 'alone' : hasMask ? 'padded' : 'equalLength';
  return { kind, fixedBatch: fixedBatch === 1 ? null : fixedBatch, fixedTokens };
}

/** What keeps texts from being run under a policy; nothing where they can be. */
export function runPolicyProblems(graph: GraphDescription, policy: RunPolicy): string[] {
  const hasMask = graph.inputs.some(({ name }) => name === 'attention_mask');
  if (policy.fixedTokens !== null && !hasMask) {
    return [`takes texts of exactly ${String(policy.fixedTokens)} tokens and has no attention_mask to hide padding`];
  }
  // One scale for all texts and more than one text a run: no text could be independent of the others.
  return policy.kind === 'alone' && policy.fixedBatch !== null
    ? [`takes ${String(policy.fixedBatch)} texts a run with one activation scale for all of them`]
    : [];
}
