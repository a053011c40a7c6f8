/** Owns the recipe that every kind of vector shares: admit, prompt, tokenise, run, account. */
import { invalidField } from '../errors.ts';
import type { Head, RunItem, RunRow } from '../executor/protocol.ts';
import { loadIdOf } from '../model/manifest.ts';
import type { Job } from '../schedule/call.ts';
import { keptRowsOf, type RowChoice } from '../tokenize/kept-rows.ts';
import type { TextOrIds, TokenizedText } from '../tokenize/tokenizer.ts';
import { emptyUsage, keptSideOf, type ServedModel, type TaskContext, type TaskUsage } from './context.ts';
import { checkGivenIds, estimateFormTokens, withOwnPrompt, withPrompts } from './given-inputs.ts';
import { runJob } from './run-job.ts';
import { boundedForm, otherTokensOf, rowChoiceOf, textFormOf, tokenizeForm } from './text-form.ts';

/** What a caller sends to be turned into vectors. */
export interface TextsToRun {
  /** Texts, or ids of the model's own vocabulary without special tokens, before which the prompt goes as tokens. */
  readonly texts: readonly TextOrIds[];
  readonly kind: 'query' | 'document' | null;
  /** Goes before each text in the place of the kind's prompt; absent: the kind's. */
  readonly prompt?: string;
  /** Name of the params member that held the texts, for errors. */
  readonly field: string;
  /** Most tokens of each, special ones included; absent: the model's limit. */
  readonly maxTokens?: number | null;
  /** Judges the work by its token counts before anything runs; throws to refuse it. */
  readonly checkTokens?: (tokens: number) => void;
}

/** Rows in input order, and what they took. */
export interface RanTexts {
  readonly rows: readonly RunRow[];
  readonly tokenCounts: TokenCounts;
  readonly usage: TaskUsage;
}

/** Real tokens of each input: after truncation, with special tokens, without padding. */
export type TokenCounts = readonly number[];

/**
 * One row per text from one head of a model.
 * @throws overloaded, unavailable, invalidParams (a text that is too long and may not be cut, an id that is none),
 * cancelled, deadlineExceeded, internal
 */
export async function runTexts(
  model: ServedModel,
  head: Head,
  input: TextsToRun,
  context: TaskContext,
): Promise<RanTexts> {
  const { texts, field } = input;
  const kind = input.kind ?? 'unspecified';
  if (texts.length === 0) return { rows: [], tokenCounts: [], usage: emptyUsage };
  const served = input.prompt === undefined ? model : withOwnPrompt(model, kind, input.prompt);
  const { manifest, tokenizer } = served;
  const { prompts } = manifest;
  const modelId = loadIdOf(manifest);
  const fieldOf = (index: number) => `${field}[${index}]`;
  checkGivenIds(served, texts, fieldOf);
  const whole = textFormOf(served, head, kind, keptSideOf(context.truncation));
  const { maxTokens = null } = input;
  const form = maxTokens === null ? whole : boundedForm(whole, maxTokens, await otherTokensOf(whole, served));
  const tokens = texts.reduce((sum, text) => sum + estimateFormTokens(text, form, served), 0);
  const admission = context.scheduler.admit(modelId, { items: texts.length, tokens }, context.remainingMs());
  try {
    const prompted = withPrompts(texts, kind, prompts);
    const tokenized = await context.stages.tokenize(manifest.modelId, () =>
      tokenizeForm(tokenizer, prompted, context.signal, form),
    );
    if (context.truncation === 'refuse') refuseTruncated(tokenized, fieldOf);
    const counted = countTokens(tokenized);
    input.checkTokens?.(counted.inputTokens);
    const choice = rowChoiceOf(served, head, kind);
    let doneCount = 0;
    const job: Job = {
      key: { modelId, head, queryRows: null },
      lane: context.lane,
      items: tokenized.map((text) => toRunItem(text, choice)),
      signal: context.signal,
      fieldOf,
      onItemDone: () => context.onProgress?.((doneCount += 1), texts.length),
    };
    const outcome = await runJob(admission, manifest, job, context.stages);
    return {
      rows: outcome.rows,
      tokenCounts: tokenCountsOf(tokenized),
      usage: { ...counted, ...outcomeTimes(outcome) },
    };
  } finally {
    admission.release();
  }
}

/** A tokenised text as the executor takes it. */
export function toRunItem(text: TokenizedText, choice: RowChoice | null): RunItem {
  const { ids, typeIds, promptTokens, attendedTokens } = text;
  return {
    ids,
    typeIds,
    keptRows: choice === null ? null : keptRowsOf(ids, choice),
    ...(promptTokens === undefined ? {} : { promptTokens }),
    ...(attendedTokens === undefined ? {} : { attendedTokens }),
  };
}

/** Tokens of each text as it runs. */
export const tokenCountsOf = (tokenized: readonly TokenizedText[]): TokenCounts =>
  tokenized.map(({ ids }) => ids.length);

/** The `usage` members that follow from the tokens. */
export function countTokens(tokenized: readonly TokenizedText[]): Pick<TaskUsage, 'inputTokens' | 'truncated'> {
  return {
    inputTokens: tokenized.reduce((sum, text) => sum + text.ids.length, 0),
    truncated: tokenized.flatMap((text, index) => (text.isTruncated ? [index] : [])),
  };
}

/** The `usage` members that follow from the run. */
export function outcomeTimes(
  outcome: Pick<TaskUsage, 'queueMs' | 'computeMs' | 'device'>,
): Pick<TaskUsage, 'queueMs' | 'computeMs' | 'device'> {
  return { queueMs: outcome.queueMs, computeMs: outcome.computeMs, device: outcome.device };
}

/**
 * Refuses the first text that had to be cut.
 * @throws invalidParams with `tokens` and `limit`
 */
export function refuseTruncated(tokenized: readonly TokenizedText[], fieldOf: (index: number) => string): void {
  const index = tokenized.findIndex((text) => text.isTruncated);
  const text = tokenized[index];
  if (text === undefined) return;
  const atLeast = text.isTotalMinimum ? 'at least ' : '';
  // What is cut is as long as the limit that cut it: the model's, or one that the caller gave.
  const limit = text.ids.length;
  throw invalidField(fieldOf(index), `has ${atLeast}${text.totalTokens} tokens, the limit is ${limit}`, {
    tokens: text.totalTokens,
    tokensIsMinimum: text.isTotalMinimum ? true : undefined,
    limit,
  });
}
