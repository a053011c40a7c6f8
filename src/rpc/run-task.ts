/** Owns the run of a task request: its model, its lane, its recipe, and what the result says of both. */
import type { Lane } from '../schedule/item.ts';
import type { ServedModel, ServedTasks, TaskContext, TaskUsage } from '../task/context.ts';
import { checkDimensions, embed } from '../task/embed.ts';
import { hiddenRows } from '../task/hidden-rows.ts';
import { multiVector, type AnswerBound } from '../task/multi-vector.ts';
import { rerank } from '../task/rerank.ts';
import type { TextsToRun, TokenCounts } from '../task/run-texts.ts';
import { sparseEmbed } from '../task/sparse-embed.ts';
import { chooseModel, chooseReranker } from './choose-model.ts';
import { maxVectorBytes, type CallUsage } from './encode.ts';
import type { TaskMethod } from './methods.ts';
import { checkCount } from './params.ts';
import type { InputLimits } from './task-params.ts';
import type { RequestOf, ResultOf, TaskRequest } from './task-request.ts';

/** What the call knows and its request does not. */
export type CallEnvironment = Omit<TaskContext, 'lane' | 'truncation'> & {
  /** Longest answer of what has one row per token. @unit bytes */
  readonly maxAnswerBytes: number;
  /** Adds what only the call knows to the usage of its task. */
  readonly usage: (usage: TaskUsage) => CallUsage;
};

/** Bounds of requests and of their answers. */
export interface TaskLimits extends InputLimits {
  readonly maxAnswerBytes: number;
}

type Method = TaskRequest['method'];
type Recipes = {
  readonly [M in Method]: (
    request: RequestOf<M>,
    tasks: ServedTasks,
    environment: CallEnvironment,
  ) => Promise<ResultOf<M>>;
};

/** The method of RCP that a request counts as, and whose capability it needs. */
export const rcpMethodOf = (method: Method): TaskMethod => (method === 'hidden' ? 'embed' : method);

/**
 * The result of a request whose model is served and whose bounds were checked.
 * @throws overloaded, unavailable, invalidParams, unsupportedOption, tooLarge, cancelled, deadlineExceeded, internal
 */
export function runTask<M extends Method>(
  request: RequestOf<M>,
  tasks: ServedTasks,
  environment: CallEnvironment,
): Promise<ResultOf<M>> {
  const recipe = recipes[request.method] as Recipes[Method] as (...args: unknown[]) => Promise<ResultOf<M>>;
  return recipe(request, tasks, environment);
}

/**
 * Judges a request that no reader of params has judged.
 * @throws unsupportedOption, invalidParams; fields are `model`, `dimensions`, and the names that the request gives
 */
export function checkRequest(request: TaskRequest, tasks: ServedTasks, limits: InputLimits): void {
  if (request.method === 'rerank') {
    chooseReranker(tasks.rerankers, request.rerankMethod, request.model);
    checkCount(request.passages.values, request.passages.field, limits.maxCandidates);
    return;
  }
  const served = modelOf(request, tasks);
  if (request.method === 'embed') checkDimensions(served.manifest, request.dimensions, 'dimensions');
  checkCount(request.inputs.values, request.inputs.field, limits.batchLimit);
}

type VectorRequest = Exclude<TaskRequest, { readonly method: 'rerank' }>;

function modelOf({ method, model }: VectorRequest, tasks: ServedTasks): ServedModel {
  const use = { embed: 'embed', hidden: 'embed', 'embed/sparse': 'sparseEmbed', 'embed/multi': 'multiVector' } as const;
  return chooseModel(tasks[use[method]], model, 'model');
}

const recipes: Recipes = {
  async embed(request, tasks, environment) {
    const served = modelOf(request, tasks);
    const context = contextOf(request, environment, laneOf(request));
    const texts = { ...textsOf(request), maxTokens: request.maxTokens ?? null };
    const { vectors, dimension, ...rest } = await embed(served, texts, request.dimensions, context);
    return { method: 'embed', vectors, dimension, ...servedBy(served, rest, environment) };
  },
  async 'embed/sparse'(request, tasks, environment) {
    const served = modelOf(request, tasks);
    const context = contextOf(request, environment, laneOf(request));
    const { sparse, ...rest } = await sparseEmbed(served, textsOf(request), context);
    return { method: 'embed/sparse', sparse, ...servedBy(served, rest, environment) };
  },
  async 'embed/multi'(request, tasks, environment) {
    const served = modelOf(request, tasks);
    const bound = boundOf(request, served.manifest.rowDimension, environment);
    const context = contextOf(request, environment, laneOf(request));
    const { matrices, dimension, ...rest } = await multiVector(served, textsOf(request), bound, context);
    return { method: 'embed/multi', matrices, dimension, ...servedBy(served, rest, environment) };
  },
  async hidden(request, tasks, environment) {
    const served = modelOf(request, tasks);
    const bound = boundOf(request, served.manifest.hiddenSize, environment);
    const context = contextOf(request, environment, laneOf(request));
    const { matrices, dimension, ...rest } = await hiddenRows(served, textsOf(request), bound, context);
    return { method: 'hidden', matrices, dimension, ...servedBy(served, rest, environment) };
  },
  async rerank(request, tasks, environment) {
    const reranker = chooseReranker(tasks.rerankers, request.rerankMethod, request.model);
    const { values, field } = request.passages;
    // A person waits for an order: without a word, reranking goes first.
    const context = contextOf(request, environment, 'interactive');
    const { query, maxPassageTokens = null } = request;
    const input = { query, passages: passagesOf(values), field, maxPassageTokens };
    const { scores, raw: rawScores, order, queryRows, ...rest } = await rerank(reranker, input, context);
    const ranked = { method: 'rerank', scores, rawScores, order, queryRows } as const;
    return { ...ranked, ...servedBy(reranker.served, rest, environment) };
  },
};

/** A person who asks one thing goes before a job that sends a list. */
function laneOf({ kind, inputs }: VectorRequest): Lane {
  return kind === 'query' || inputs.values.length === 1 ? 'interactive' : 'bulk';
}

const contextOf = (request: TaskRequest, environment: CallEnvironment, usualLane: Lane): TaskContext => ({
  ...environment,
  truncation: request.truncation,
  lane: request.lane ?? usualLane,
});

const textsOf = ({ inputs: { values, field }, kind, prompt }: VectorRequest): TextsToRun => ({
  texts: values,
  kind,
  field,
  ...(prompt === undefined ? {} : { prompt }),
});

function passagesOf(values: readonly (string | readonly number[])[]): readonly string[] {
  return values.map((value) => {
    if (typeof value !== 'string') throw new Error('a passage of tokens was sent to be reranked');
    return value;
  });
}

/** Without a word on its form, a row becomes a list of JSON numbers. */
const boundOf = (
  { maxRowBytes }: { readonly maxRowBytes?: number },
  dimension: number,
  { maxAnswerBytes }: CallEnvironment,
): AnswerBound => ({
  maxAnswerBytes,
  maxRowBytes: maxRowBytes ?? maxVectorBytes(dimension, { encoding: 'json', output: null }),
});

function servedBy(
  { manifest: { modelId } }: ServedModel,
  { tokenCounts, usage }: { readonly tokenCounts: TokenCounts; readonly usage: TaskUsage },
  environment: CallEnvironment,
) {
  return { model: modelId, tokenCounts, usage: environment.usage(usage) };
}
