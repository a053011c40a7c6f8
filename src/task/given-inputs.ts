/** Owns inputs that callers have made tokens of already, beside texts: their check, their prompt, what they cost. */
import { invalidField } from '../errors.ts';
import type { Prompts } from '../model/manifest.ts';
import { markerTokens } from '../tokenize/form.ts';
import { withPrompt, type PromptKind } from '../tokenize/prompts.ts';
import type { TextOrIds } from '../tokenize/tokenizer.ts';
import type { ServedModel } from './context.ts';
import type { FormSource, FilledForm } from './text-form.ts';

/** Characters per token assumed before a text is tokenised; real text has four to five. */
const assumedCharactersPerToken = 3;

/** Tokens a text may turn out to have, for admission before it is tokenised. */
export function estimateTokens(text: string, maxTokens: number): number {
  return Math.min(maxTokens, Math.ceil(text.length / assumedCharactersPerToken) + 2);
}

/**
 * The same for an input in its form: one that is filled has at least the tokens that it is filled up to. What is ids
 * already is counted, its prompt estimated.
 */
export function estimateFormTokens(input: TextOrIds, form: FilledForm, { manifest, tokenizer }: FormSource): number {
  const limit = form.maxTokens ?? manifest.maxTokens;
  if (form.expansionId !== null) return limit;
  const least = form.filling?.tokens ?? 0;
  if (typeof input === 'string') return Math.max(least, estimateTokens(input, limit));
  const specialTokens = form.hasSpecialTokens ? tokenizer.specialTokens : 0;
  const promptTokens = Math.ceil(form.idPrompt.length / assumedCharactersPerToken);
  return Math.max(least, Math.min(limit, input.length + specialTokens + markerTokens(form) + promptTokens));
}

/** Texts with the prompt of their kind before them; what is ids already gets it as tokens, where it is tokenised. */
export const withPrompts = (inputs: readonly TextOrIds[], kind: PromptKind, prompts: Prompts): TextOrIds[] =>
  inputs.map((input) => (typeof input === 'string' ? withPrompt(input, kind, prompts) : input));

/** The model with another prompt for a kind. */
export const withOwnPrompt = (served: ServedModel, kind: PromptKind, prompt: string): ServedModel => ({
  ...served,
  manifest: { ...served.manifest, prompts: { ...served.manifest.prompts, [kind]: prompt } },
});

/** The least number that every id a caller may give is below: the tokenizer has a token for it, and the graph a row. */
function givenIdEnd({ manifest, tokenizer }: FormSource): number {
  return Math.min(tokenizer.idEnd, manifest.vocabularySize, manifest.tokenTableRows ?? Infinity);
}

/**
 * Refuses ids that the model does not have.
 * @throws invalidParams with `limit` and `received`
 */
export function checkGivenIds(
  source: FormSource,
  inputs: readonly TextOrIds[],
  fieldOf: (index: number) => string,
): void {
  for (const [index, input] of inputs.entries()) {
    if (typeof input === 'string') continue;
    const last = givenIdEnd(source) - 1;
    const wrong = input.find((id) => !Number.isInteger(id) || id < 0 || id > last);
    if (wrong === undefined) continue;
    const message = `has the token id ${String(wrong)}, ids of ${source.manifest.modelId} are whole numbers from 0 to ${last}`;
    throw invalidField(fieldOf(index), message, { limit: last, received: wrong });
  }
}
