/** Owns how texts of a kind become ids for one head of a model, and which of their rows count. */
import { ConfigurationError } from '../errors.ts';
import type { Head } from '../executor/protocol.ts';
import type { ModelManifest } from '../model/manifest.ts';
import { plainForm } from '../tokenize/form.ts';
import type { TextForm } from '../tokenize/form.ts';
import type { RowChoice } from '../tokenize/kept-rows.ts';
import type { PromptKind } from '../tokenize/prompts.ts';
import type { TextTokenizer } from '../tokenize/tokenizer.ts';
import type { ServedModel } from './context.ts';

/**
 * Most tokens of a query that is looked up instead of run; only the tokenising costs.
 * @unit tokens
 */
export const maxLookUpTokens = 65_536;

/** What the form of a text follows from. */
export type FormSource = Pick<ServedModel, 'manifest' | 'tokenizer'>;

/** The text's own tokens only: for queries that are looked up. */
export const lookUpForm: TextForm = { ...plainForm, hasSpecialTokens: false, maxTokens: maxLookUpTokens };

/** The least of the limits that there are. */
const leastOf = (maxTokens: number, own: number | null): number => Math.min(maxTokens, own ?? Infinity);

function idOf(tokenizer: TextTokenizer, token: string | null, { modelId }: ModelManifest): number | null {
  if (token === null) return null;
  const [id] = tokenizer.idsOf([token]);
  if (id === undefined) throw new ConfigurationError([`${modelId}: its vocabulary lacks the token "${token}"`]);
  return id;
}

function rowForm({ manifest, tokenizer }: FormSource, isQuery: boolean): TextForm {
  const { maxTokens, tokenRows: rules } = manifest;
  const own = isQuery ? rules.maxQueryTokens : rules.maxDocumentTokens;
  return {
    ...plainForm,
    maxTokens: leastOf(maxTokens, own),
    markerId: idOf(tokenizer, isQuery ? rules.queryMarker : rules.documentMarker, manifest),
    expansionId: isQuery && own !== null ? idOf(tokenizer, rules.expansionToken, manifest) : null,
    isExpansionAttended: rules.isExpansionAttended,
  };
}

/**
 * The form of texts of this kind for a head; a text without a kind is a document.
 * @throws ConfigurationError where the vocabulary lacks a marker or the filling
 */
export function textFormOf(source: FormSource, head: Head, kind: PromptKind): TextForm {
  const { maxTokens, prompts, includesPrompt } = source.manifest;
  if (head === 'rows' || head === 'maxSim') return rowForm(source, kind === 'query');
  return { ...plainForm, maxTokens, countedPrompt: head === 'dense' && !includesPrompt ? prompts[kind] : '' };
}

/** The rows of a text that count for a head: queries leave out no tokens; null where the head has no rows. */
export function rowChoiceOf(served: ServedModel, head: Head, kind: PromptKind): RowChoice | null {
  if (head !== 'rows' && head !== 'maxSim') return null;
  const { keepsFirstRow } = served.manifest.tokenRows;
  return { skippedIds: kind === 'query' ? new Set() : served.documentSkipIds, keepsFirstRow };
}
