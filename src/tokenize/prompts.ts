/** Owns the prompt that a model wants before a text of each kind. */

/** What a text is for; `unspecified` where its caller did not say. */
export type PromptKind = 'query' | 'document' | 'unspecified';

/** The text with the prompt of its kind before it. */
export function withPrompt(text: string, kind: PromptKind, prompts: Readonly<Record<PromptKind, string>>): string {
  return prompts[kind] + text;
}
