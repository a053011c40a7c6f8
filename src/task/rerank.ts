/** Owns the two rerank recipes: pairs through a cross-encoder, or MaxSim over multi-vectors. */
import type { Matrix } from '../executor/protocol.ts';
import type { Job, JobOutcome } from '../schedule/call.ts';
import type { Admission } from '../schedule/scheduler.ts';
import { orderByValue, sigmoid } from '../tensor/score.ts';
import { withPrompt } from '../tokenize/prompts.ts';
import type { TokenizedText } from '../tokenize/tokenizer.ts';
import { emptyUsage, type Reranker, type ServedModel, type TaskContext, type TaskUsage } from './context.ts';
import { countTokens, estimateTokens, outcomeTimes, refuseTruncated, toRunItem } from './run-texts.ts';

/** Scores in passage order, and the passages best first. */
export interface Reranked {
  readonly scores: readonly number[];
  /** Indices of the passages, best first, ties by ascending index. */
  readonly order: readonly number[];
  readonly usage: TaskUsage;
}

/** What is to be ordered. */
export interface RerankInput {
  readonly query: string;
  readonly passages: readonly string[];
  /** Name of the params member that held the passages, for errors. */
  readonly field: string;
}

const passageField = (input: RerankInput) => (index: number) => `${input.field}[${index}]`;

/**
 * Scores every passage against the query.
 * @throws overloaded, unavailable, invalidParams (field `query` where it is too long), cancelled, deadlineExceeded, internal
 */
export async function rerank(reranker: Reranker, input: RerankInput, context: TaskContext): Promise<Reranked> {
  if (input.passages.length === 0) return { scores: [], order: [], usage: emptyUsage };
  const recipe = reranker.method === 'colbert' ? colbertRecipe : crossEncoderRecipe;
  const { maxTokens } = reranker.served.manifest;
  const queryTokens = estimateTokens(input.query, maxTokens);
  const tokens = input.passages.reduce(
    (sum, passage) => sum + Math.min(maxTokens, estimateTokens(passage, maxTokens) + queryTokens),
    queryTokens,
  );
  const load = { items: recipe.extraItems + input.passages.length, tokens };
  const admission = context.scheduler.admit(load, context.remainingMs());
  try {
    const { raw, usage } = await recipe.run(reranker.served, input, context, admission);
    const isSigmoid = reranker.method === 'cross-encoder' && reranker.served.manifest.scoreActivation === 'sigmoid';
    return { scores: isSigmoid ? raw.map(sigmoid) : raw, order: orderByValue(raw), usage };
  } finally {
    admission.release();
  }
}

/** Raw relevance: what the order follows, before any activation. */
interface RawScores {
  readonly raw: readonly number[];
  readonly usage: TaskUsage;
}

interface Recipe {
  /** Items it runs beside one per passage. */
  readonly extraItems: number;
  run(served: ServedModel, input: RerankInput, context: TaskContext, admission: Admission): Promise<RawScores>;
}

const crossEncoderRecipe: Recipe = {
  extraItems: 0,
  async run(served, input, context, admission) {
    const pairs = await served.tokenizer.tokenizePairs(input.query, input.passages, context.signal);
    if (!context.mayTruncate) refuseTruncated(pairs, passageField(input), served.manifest.maxTokens);
    const outcome = await runPassages(served, input, pairs, null, context, admission);
    return { raw: outcome.rows.map(firstValue), usage: { ...countTokens(pairs), ...outcomeTimes(outcome) } };
  },
};

const colbertRecipe: Recipe = {
  extraItems: 1,
  async run(served, input, context, admission) {
    const { manifest, tokenizer } = served;
    const { modelId, maxTokens, prompts, hiddenSize } = manifest;
    const [query] = await tokenizer.tokenize([withPrompt(input.query, 'query', prompts)], context.signal);
    if (query === undefined) throw new Error('a tokenizer gives one result per text');
    refuseTruncated([query], () => 'query', maxTokens);
    const prompted = input.passages.map((passage) => withPrompt(passage, 'document', prompts));
    const passages = await tokenizer.tokenize(prompted, context.signal);
    if (!context.mayTruncate) refuseTruncated(passages, passageField(input), maxTokens);
    const queryOutcome = await admission.run({
      key: { modelId, head: 'rows', queryRows: null },
      lane: context.lane,
      items: [toRunItem(query, null)],
      signal: context.signal,
      fieldOf: () => 'query',
      onItemDone: null,
    });
    const queryRows = { values: queryOutcome.rows[0]?.values ?? new Float32Array(), dimension: hiddenSize };
    const outcome = await runPassages(served, input, passages, queryRows, context, admission);
    const counted = countTokens(passages);
    const usage = {
      inputTokens: counted.inputTokens + query.ids.length,
      truncated: counted.truncated,
      queueMs: queryOutcome.queueMs + outcome.queueMs,
      computeMs: queryOutcome.computeMs + outcome.computeMs,
      device: outcome.device,
    };
    return { raw: outcome.rows.map(firstValue), usage };
  },
};

function runPassages(
  served: ServedModel,
  input: RerankInput,
  tokenized: readonly TokenizedText[],
  queryRows: Matrix | null,
  context: TaskContext,
  admission: Admission,
): Promise<JobOutcome> {
  const { modelId } = served.manifest;
  const skipIds = queryRows === null ? null : served.documentSkipIds;
  let doneCount = 0;
  const job: Job = {
    key: { modelId, head: queryRows === null ? 'logit' : 'maxSim', queryRows },
    lane: context.lane,
    items: tokenized.map((text) => toRunItem(text, skipIds)),
    signal: context.signal,
    fieldOf: passageField(input),
    onItemDone: () => context.onProgress?.((doneCount += 1), tokenized.length),
  };
  return admission.run(job);
}

const firstValue = (row: { readonly values: Float32Array }): number => row.values[0] ?? Number.NaN;
