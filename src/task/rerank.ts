/** Owns the rerank recipes: pairs through a cross-encoder or a generative model, or MaxSim over multi-vectors. */
import type { Matrix } from '../executor/protocol.ts';
import { loadIdOf, type YesNoRules } from '../model/manifest.ts';
import type { Job, JobOutcome } from '../schedule/call.ts';
import type { Admission } from '../schedule/scheduler.ts';
import { orderByValue, sigmoid } from '../tensor/score.ts';
import { withPrompt } from '../tokenize/prompts.ts';
import type { PassageCut, TokenizedText } from '../tokenize/tokenizer.ts';
import {
  emptyUsage,
  keptSideOf,
  type Reranker,
  type ServedModel,
  type TaskContext,
  type TaskUsage,
} from './context.ts';
import { estimateFormTokens, estimateTokens } from './given-inputs.ts';
import { runJob } from './run-job.ts';
import { countTokens, outcomeTimes, refuseTruncated, tokenCountsOf, toRunItem, type TokenCounts } from './run-texts.ts';
import {
  boundedForm,
  otherTokensOf,
  promptTokensOf,
  rowChoiceOf,
  textFormOf,
  tokenizeForm,
  type FilledForm,
} from './text-form.ts';

/** Scores in passage order, and the passages best first. */
export interface Reranked {
  readonly scores: readonly number[];
  /** Before the activation: what the order follows. */
  readonly raw: readonly number[];
  /** Indices of the passages, best first, ties by ascending index. */
  readonly order: readonly number[];
  /** Real tokens that ran for each passage: of the pair with its query, or of the passage alone. */
  readonly tokenCounts: TokenCounts;
  /** colbert: what a score is divided by to become a mean over the query's rows, 1 where it is one; else null. */
  readonly queryRows: number | null;
  readonly usage: TaskUsage;
}

/** What is to be ordered. */
export interface RerankInput {
  readonly query: string;
  readonly passages: readonly string[];
  /** Name of the params member that held the passages, for errors. */
  readonly field: string;
  /** Most tokens of a passage itself; absent: what the model has room for. */
  readonly maxPassageTokens?: number | null;
}

/** How passages behind a prompt are cut; the prompt is counted where the caller has a limit. */
async function cutOf(
  { maxPassageTokens = null }: RerankInput,
  { truncation }: TaskContext,
  prompt: string,
  served: ServedModel,
): Promise<PassageCut> {
  const keptSide = keptSideOf(truncation);
  if (maxPassageTokens === null) return { keptSide, maxTokens: null };
  return { keptSide, maxTokens: maxPassageTokens + (await promptTokensOf(prompt, served)) };
}

/** The form of passages that are read by themselves. */
async function passageFormOf(
  { maxPassageTokens = null }: RerankInput,
  { truncation }: TaskContext,
  served: ServedModel,
): Promise<FilledForm> {
  const form = textFormOf(served, 'maxSim', 'document', keptSideOf(truncation));
  if (maxPassageTokens === null) return form;
  const otherTokens = await otherTokensOf(form, served);
  return boundedForm(form, maxPassageTokens + otherTokens, otherTokens);
}

const passageField = (input: RerankInput) => (index: number) => `${input.field}[${index}]`;

/**
 * Scores every passage against the query.
 * @throws overloaded, unavailable, invalidParams (field `query` where it is too long), cancelled, deadlineExceeded, internal
 */
export async function rerank(reranker: Reranker, input: RerankInput, context: TaskContext): Promise<Reranked> {
  if (input.passages.length === 0) {
    return { scores: [], raw: [], order: [], tokenCounts: [], queryRows: null, usage: emptyUsage };
  }
  const recipe = recipes[reranker.method];
  const load = { items: recipe.extraItems + input.passages.length, tokens: recipe.estimate(reranker.served, input) };
  const admission = context.scheduler.admit(loadIdOf(reranker.served.manifest), load, context.remainingMs());
  try {
    const found = await recipe.run(reranker.served, input, context, admission);
    const isSigmoid = reranker.method !== 'colbert' && reranker.served.manifest.scoreActivation === 'sigmoid';
    return { ...found, scores: isSigmoid ? found.raw.map(sigmoid) : found.raw, order: orderByValue(found.raw) };
  } finally {
    admission.release();
  }
}

/** What a recipe gives: relevance before any activation. */
type RawScores = Omit<Reranked, 'scores' | 'order'>;

interface Recipe {
  /** Items it runs beside one per passage. */
  readonly extraItems: number;
  /** Tokens that it may run, before any text is tokenised. */
  estimate(served: ServedModel, input: RerankInput): number;
  run(served: ServedModel, input: RerankInput, context: TaskContext, admission: Admission): Promise<RawScores>;
}

/** Every passage beside the query and `otherTokens`. */
function estimatePairs({ manifest: { maxTokens } }: ServedModel, input: RerankInput, otherTokens: number): number {
  const perPair = estimateTokens(input.query, maxTokens) + otherTokens;
  return input.passages.reduce(
    (sum, passage) => sum + Math.min(maxTokens, estimateTokens(passage, maxTokens) + perPair),
    0,
  );
}

async function runPairs(
  served: ServedModel,
  input: RerankInput,
  pairs: readonly TokenizedText[],
  context: TaskContext,
  admission: Admission,
): Promise<RawScores> {
  if (context.truncation === 'refuse') refuseTruncated(pairs, passageField(input));
  const outcome = await runPassages(served, input, pairs, null, context, admission);
  return {
    raw: outcome.rows.map(firstValue),
    tokenCounts: tokenCountsOf(pairs),
    queryRows: null,
    usage: { ...countTokens(pairs), ...outcomeTimes(outcome) },
  };
}

const crossEncoderRecipe: Recipe = {
  extraItems: 0,
  estimate: (served, input) => estimatePairs(served, input, 0),
  async run(served, input, context, admission) {
    const { prompts } = served.manifest;
    const query = withPrompt(input.query, 'query', prompts);
    const passages = input.passages.map((passage) => withPrompt(passage, 'document', prompts));
    const cut = await cutOf(input, context, prompts.document, served);
    const pairs = await context.stages.tokenize(served.manifest.modelId, () =>
      served.tokenizer.tokenizePairs(query, passages, context.signal, undefined, cut),
    );
    return runPairs(served, input, pairs, context, admission);
  },
};

const generativeRecipe: Recipe = {
  extraItems: 0,
  estimate(served, input) {
    const { prefix, body, suffix, instruction } = templateOf(served);
    const otherTokens = estimateTokens(prefix + body + suffix + instruction, served.manifest.maxTokens);
    return estimatePairs(served, input, otherTokens);
  },
  async run(served, input, context, admission) {
    const { query, passages } = input;
    const cut = await cutOf(input, context, '', served);
    const pairs = await context.stages.tokenize(served.manifest.modelId, () =>
      served.tokenizer.tokenizePairs(query, passages, context.signal, templateOf(served), cut),
    );
    return runPairs(served, input, pairs, context, admission);
  },
};

function templateOf({ manifest: { modelId, yesNo } }: ServedModel): YesNoRules {
  if (yesNo === null) throw new Error(`${modelId} has no template and cannot rank as a generative model`);
  return yesNo;
}

const colbertRecipe: Recipe = {
  extraItems: 1,
  estimate(served, input) {
    const form = textFormOf(served, 'maxSim', 'document');
    return input.passages.reduce(
      (sum, passage) => sum + estimateFormTokens(passage, form, served),
      estimateFormTokens(input.query, textFormOf(served, 'rows', 'query'), served),
    );
  },
  async run(served, input, context, admission) {
    const { manifest, tokenizer } = served;
    const { prompts, rowDimension } = manifest;
    const queryForm = textFormOf(served, 'rows', 'query');
    const promptedQuery = withPrompt(input.query, 'query', prompts);
    const [query] = await context.stages.tokenize(manifest.modelId, () =>
      tokenizeForm(tokenizer, [promptedQuery], context.signal, queryForm),
    );
    if (query === undefined) throw new Error('a tokenizer gives one result per text');
    refuseTruncated([query], () => 'query');
    const passageForm = await passageFormOf(input, context, served);
    const prompted = input.passages.map((passage) => withPrompt(passage, 'document', prompts));
    const passages = await context.stages.tokenize(manifest.modelId, () =>
      tokenizer.tokenize(prompted, context.signal, passageForm),
    );
    if (context.truncation === 'refuse') refuseTruncated(passages, passageField(input));
    const queryJob: Job = {
      key: { modelId: loadIdOf(manifest), head: 'rows', queryRows: null },
      lane: context.lane,
      items: [toRunItem(query, rowChoiceOf(served, 'rows', 'query'))],
      signal: context.signal,
      fieldOf: () => 'query',
      onItemDone: null,
    };
    const queryOutcome = await runJob(admission, manifest, queryJob, context.stages);
    const queryRows = { values: queryOutcome.rows[0]?.values ?? new Float32Array(), dimension: rowDimension };
    const outcome = await runPassages(served, input, passages, queryRows, context, admission);
    const counted = countTokens(passages);
    const usage = {
      inputTokens: counted.inputTokens + query.ids.length,
      truncated: counted.truncated,
      queueMs: queryOutcome.queueMs + outcome.queueMs,
      computeMs: queryOutcome.computeMs + outcome.computeMs,
      device: outcome.device ?? queryOutcome.device,
    };
    const rows = queryRows.values.length / rowDimension;
    const { isMaxSimAveraged } = manifest.tokenRows;
    return {
      raw: outcome.rows.map((row) => firstValue(row) / (isMaxSimAveraged ? rows : 1)),
      tokenCounts: tokenCountsOf(passages),
      queryRows: isMaxSimAveraged ? 1 : rows,
      usage,
    };
  },
};

const recipes: Readonly<Record<Reranker['method'], Recipe>> = {
  'cross-encoder': crossEncoderRecipe,
  colbert: colbertRecipe,
  llm: generativeRecipe,
};

function runPassages(
  served: ServedModel,
  input: RerankInput,
  tokenized: readonly TokenizedText[],
  queryRows: Matrix | null,
  context: TaskContext,
  admission: Admission,
): Promise<JobOutcome> {
  const head = queryRows === null ? 'logit' : 'maxSim';
  const choice = rowChoiceOf(served, head, 'document');
  let doneCount = 0;
  const job: Job = {
    key: { modelId: loadIdOf(served.manifest), head, queryRows },
    lane: context.lane,
    items: tokenized.map((text) => toRunItem(text, choice)),
    signal: context.signal,
    fieldOf: passageField(input),
    onItemDone: () => context.onProgress?.((doneCount += 1), tokenized.length),
  };
  return runJob(admission, served.manifest, job, context.stages);
}

const firstValue = (row: { readonly values: Float32Array }): number => row.values[0] ?? Number.NaN;
