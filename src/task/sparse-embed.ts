/** Owns the sparse recipe: texts to weighted terms. */
import type { SparseRules } from '../model/sparse-rules.ts';
import { heaviestTerms } from '../tensor/heaviest-terms.ts';
import { lookUpTerms } from '../tensor/token-terms.ts';
import { emptyUsage, keptSideOf, type ServedModel, type TaskContext, type TaskUsage } from './context.ts';
import { checkGivenIds, withPrompts } from './given-inputs.ts';
import {
  countTokens,
  refuseTruncated,
  runTexts,
  tokenCountsOf,
  type TextsToRun,
  type TokenCounts,
} from './run-texts.ts';
import { lookUpFormOf } from './text-form.ts';

/** The terms of one text, ascending, each weight above zero. */
export interface SparseVector {
  readonly indices: Int32Array;
  readonly values: Float32Array;
}

/** Sparse vectors in input order. */
export interface SparseEmbedded {
  readonly sparse: readonly SparseVector[];
  readonly tokenCounts: TokenCounts;
  readonly usage: TaskUsage;
}

/**
 * The weighted terms of each text; queries of a model that has a table for them are looked up, not run.
 * @throws as runTexts
 */
export async function sparseEmbed(
  served: ServedModel,
  input: TextsToRun,
  context: TaskContext,
): Promise<SparseEmbedded> {
  if (input.kind === 'query' && hasQueryTable(served)) return lookUp(served, input, context);
  const { rows, tokenCounts, usage } = await runTexts(served, 'sparse', input, context);
  const maxTerms = maxTermsOf(served.manifest);
  const sparse = rows.map(({ indices, values }) =>
    heaviestTerms({ indices: indices ?? new Int32Array(), values }, maxTerms),
  );
  return { sparse, tokenCounts, usage };
}

const maxTermsOf = ({ sparse }: { readonly sparse: SparseRules | null }): number | null =>
  sparse?.form === 'terms' ? sparse.maxTerms : null;

const hasQueryTable = ({ manifest: { sparse } }: ServedModel): boolean =>
  sparse?.form === 'terms' && sparse.queryTermWeights !== null;

async function lookUp(served: ServedModel, input: TextsToRun, context: TaskContext): Promise<SparseEmbedded> {
  const { texts, field } = input;
  const { manifest, tokenizer, queryTermWeights } = served;
  if (queryTermWeights === undefined || queryTermWeights === null) {
    throw new Error(`the table of ${manifest.modelId} was not loaded`);
  }
  const fieldOf = (index: number) => `${field}[${index}]`;
  checkGivenIds(served, texts, fieldOf);
  const prompted = withPrompts(texts, 'query', manifest.prompts);
  const form = lookUpFormOf(manifest, keptSideOf(context.truncation));
  const tokenized = await tokenizer.tokenize(prompted, context.signal, form);
  if (context.truncation === 'refuse') refuseTruncated(tokenized, fieldOf);
  const sparse = tokenized.map(({ ids }, index) => {
    context.onProgress?.(index + 1, texts.length);
    return heaviestTerms(lookUpTerms(ids, queryTermWeights), maxTermsOf(manifest));
  });
  return { sparse, tokenCounts: tokenCountsOf(tokenized), usage: { ...emptyUsage, ...countTokens(tokenized) } };
}
