/** Owns how texts of a kind become ids for one head of a model, and which of their rows count. */
import { ConfigurationError, invalidField } from '../errors.ts';
import type { Head } from '../executor/protocol.ts';
import type { ModelManifest } from '../model/manifest.ts';
import { markerTokens, plainForm, shapeIds } from '../tokenize/form.ts';
import type { TextForm } from '../tokenize/form.ts';
import type { RowChoice } from '../tokenize/kept-rows.ts';
import type { PromptKind } from '../tokenize/prompts.ts';
import type { TextOrIds, TextTokenizer, TokenizedText } from '../tokenize/tokenizer.ts';
import type { KeptSide } from '../tokenize/window.ts';
import type { ServedModel } from './context.ts';

/**
 * Most tokens of a query that is looked up instead of run, whatever its model states; only the tokenising costs.
 * @unit tokens
 */
const maxLookUpTokens = 65_536;

/** What the form of a text follows from. */
export type FormSource = Pick<ServedModel, 'manifest' | 'tokenizer'>;

/** The text's own tokens only, up to the model's limit for them: for queries that are looked up. */
export function lookUpFormOf(
  { sparse, prompts }: Pick<ModelManifest, 'sparse' | 'prompts'>,
  keptSide: KeptSide | null = null,
): FilledForm & { readonly maxTokens: number } {
  const own = sparse?.form === 'terms' ? sparse.maxQueryTokens : null;
  return {
    ...plainForm,
    hasSpecialTokens: false,
    maxTokens: leastOf(maxLookUpTokens, own),
    idPrompt: prompts.query,
    keptSide,
    filling: null,
  };
}

/** A form whose texts may have a least length below their limit. */
export interface FilledForm extends TextForm {
  /** What shorter texts are filled with up to `tokens`; null: nothing. */
  readonly filling: { readonly tokens: number; readonly id: number } | null;
}

/** The least of the limits that there are. */
const leastOf = (maxTokens: number, own: number | null): number => Math.min(maxTokens, own ?? Infinity);

function idOf(tokenizer: TextTokenizer, token: string | null, { modelId }: ModelManifest): number | null {
  if (token === null) return null;
  const [id] = tokenizer.idsOf([token]);
  if (id === undefined) throw new ConfigurationError([`${modelId}: its vocabulary lacks the token "${token}"`]);
  return id;
}

function rowForm({ manifest, tokenizer }: FormSource, isQuery: boolean): FilledForm {
  const { maxTokens, tokenRows: rules } = manifest;
  const own = isQuery ? rules.maxQueryTokens : rules.maxDocumentTokens;
  const fillId = isQuery && own !== null ? idOf(tokenizer, rules.expansionToken, manifest) : null;
  const { minQueryTokens } = rules;
  const filling =
    fillId === null || minQueryTokens === null ? null : { tokens: leastOf(maxTokens, minQueryTokens), id: fillId };
  return {
    ...plainForm,
    maxTokens: leastOf(maxTokens, own),
    markerId: idOf(tokenizer, isQuery ? rules.queryMarker : rules.documentMarker, manifest),
    expansionId: filling === null ? fillId : null,
    isExpansionAttended: rules.isExpansionAttended,
    filling,
  };
}

/**
 * The form of texts of this kind for a head; a text without a kind is a document. The encoder's own rows are those
 * that the dense vector is pooled from, so that one pass of a text gives both.
 * @throws ConfigurationError where the vocabulary lacks a marker or the filling
 */
export function textFormOf(
  source: FormSource,
  head: Head,
  kind: PromptKind,
  keptSide: KeptSide | null = null,
): FilledForm {
  const { maxTokens, prompts, includesPrompt } = source.manifest;
  const given = { idPrompt: prompts[kind], keptSide };
  if (head === 'rows' || head === 'maxSim') return { ...rowForm(source, kind === 'query'), ...given };
  const countedPrompt = (head === 'dense' || head === 'hidden') && !includesPrompt ? prompts[kind] : '';
  return { ...plainForm, ...given, maxTokens, countedPrompt, filling: null };
}

/** Tokens of the prompt before a text. */
export async function promptTokensOf(prompt: string, { tokenizer }: FormSource): Promise<number> {
  return prompt === '' ? 0 : (await tokenizer.detailsOf(prompt, false)).length;
}

/** Tokens of a form that are none of a text's own: special ones, its marker, its prompt. */
export async function otherTokensOf(form: FilledForm, source: FormSource): Promise<number> {
  const specialTokens = form.hasSpecialTokens ? source.tokenizer.specialTokens : 0;
  return specialTokens + markerTokens(form) + (await promptTokensOf(form.idPrompt, source));
}

/**
 * The form with the caller's limit, where that is below the model's.
 * `otherTokens` are those of the form that are none of a text's own.
 * @throws invalidParams, field `maxTokens`, where the limit leaves no room for a token of a text
 */
export function boundedForm(form: FilledForm, maxTokens: number, otherTokens: number): FilledForm {
  if (maxTokens <= otherTokens) {
    const message = `must be at least ${otherTokens + 1}, ${otherTokens} of which are special tokens and prompt, not ${maxTokens}`;
    throw invalidField('maxTokens', message, { limit: otherTokens + 1, received: maxTokens });
  }
  const { filling } = form;
  return {
    ...form,
    maxTokens: leastOf(maxTokens, form.maxTokens),
    filling: filling === null ? null : { ...filling, tokens: Math.min(filling.tokens, maxTokens) },
  };
}

/**
 * The texts as ids in their form, those below its least length filled.
 * @source sentence-transformers, `Transformer.preprocess`, query expansion `min`
 */
export async function tokenizeForm(
  tokenizer: TextTokenizer,
  texts: readonly TextOrIds[],
  signal: AbortSignal | undefined,
  form: FilledForm,
): Promise<TokenizedText[]> {
  const tokenized = await tokenizer.tokenize(texts, signal, form);
  const { filling } = form;
  if (filling === null) return tokenized;
  const shape = { ...form, markerId: null, expansionId: filling.id };
  return tokenized.map((text) => ({ ...text, ...shapeIds(text, shape, filling.tokens) }));
}

/** The rows of a text that count for a head; null where the head has no rows. */
export function rowChoiceOf(served: ServedModel, head: Head, kind: PromptKind): RowChoice | null {
  if (head !== 'rows' && head !== 'maxSim') return null;
  const { keepsFirstRow } = served.manifest.tokenRows;
  const skippedIds = kind === 'query' ? (served.querySkipIds ?? new Set()) : served.documentSkipIds;
  return { skippedIds, keepsFirstRow };
}
