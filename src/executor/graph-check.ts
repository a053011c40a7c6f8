/** Owns the check of a loaded graph: that everything it asks for can be fed, and that it gives what is promised. */
import type { InferenceSession } from 'onnxruntime-node';
import { isFedInput } from './inputs.ts';
import { headOutputs, topTermOutputs } from './protocol.ts';
import type { Head, ModelLoad } from './protocol.ts';

/** Why a session cannot serve what its model promises, or null. */
export function graphProblem(
  load: Pick<ModelLoad, 'heads' | 'runPolicy' | 'sparse' | 'hiddenOutput'>,
  session: Pick<InferenceSession, 'inputNames' | 'inputMetadata' | 'outputMetadata'>,
): string | null {
  const { heads, runPolicy, sparse, hiddenOutput } = load;
  for (const input of session.inputMetadata) {
    if (!isFedInput(input.name)) return `the graph asks for the input ${input.name}, which is not supported`;
    if (!input.isTensor || input.type !== 'int64') return `the input ${input.name} is not an int64 tensor`;
  }
  if (!session.inputNames.includes('input_ids')) return 'the graph has no input input_ids';
  const needsMask = runPolicy.kind === 'padded' || runPolicy.fixedTokens !== null;
  if (needsMask && !session.inputNames.includes('attention_mask')) {
    return 'texts are to be padded, and the graph has no input attention_mask';
  }
  const hasTopTerms = heads.includes('sparse') && sparse !== null && sparse.topTerms !== null;
  const names = [
    ...heads.map((head) => graphOutputOf(head, load)),
    ...(hasTopTerms ? Object.values(topTermOutputs) : []),
    ...(hiddenOutput === undefined ? [] : [hiddenOutput]),
  ];
  for (const name of names) {
    const output = session.outputMetadata.find((candidate) => candidate.name === name);
    if (output === undefined) return `the graph has no output ${name}, which the heads ${heads.join(', ')} need`;
    if (!output.isTensor || (output.type !== 'float32' && output.type !== 'float16')) {
      return `the output ${name} holds neither float32 nor float16`;
    }
  }
  return null;
}

/** Name of the output of the model's own graph that a head is read from: MaxSim starts from the rows. */
export function graphOutputOf(head: Head, { hiddenOutput }: Pick<ModelLoad, 'hiddenOutput'>): string {
  if (head !== 'hidden') return headOutputs[head === 'maxSim' ? 'rows' : head];
  if (hiddenOutput === undefined) throw new Error('the graph gives no rows of its encoder');
  return hiddenOutput;
}
