/** Owns the methods that run a model: params in, the task's recipe, result bytes out. */
import type { Lane } from '../schedule/item.ts';
import { checkDimensions, embed } from '../task/embed.ts';
import type { Reranker, ServedModel, ServedTasks, TaskContext, TaskUsage } from '../task/context.ts';
import { multiVector } from '../task/multi-vector.ts';
import { rerank } from '../task/rerank.ts';
import type { TextsToRun } from '../task/run-texts.ts';
import { sparseEmbed } from '../task/sparse-embed.ts';
import { ServiceError } from '../errors.ts';
import {
  encodeEmbedResult,
  encodeMultiResult,
  encodeRerankResult,
  encodeSparseResult,
  maxVectorBytes,
  type CallUsage,
} from './encode.ts';
import type { TaskMethod } from './methods.ts';
import { vendorKey } from './capabilities.ts';
import { readCallOptions, readStrict, readVectorForm } from './options.ts';
import {
  readKind,
  readOption,
  readOptionalCount,
  readOptionalString,
  readQuery,
  readTexts,
  type Members,
  type TextList,
} from './params.ts';

/** What the call knows and the params do not. */
export type CallEnvironment = Omit<TaskContext, 'lane' | 'mayTruncate'> & {
  /** Adds what only the call knows to the usage of its task. */
  readonly usage: (usage: TaskUsage) => CallUsage;
};

/** A call whose params are good: starting it is all that is left. */
export type PreparedCall = (environment: CallEnvironment) => Promise<Buffer>;

/** Bounds that params are checked against. */
export interface TaskLimits {
  readonly batchLimit: number;
  readonly maxCandidates: number;
  readonly maxAnswerBytes: number;
}

/**
 * Reads the params of a task method, completely, before anything runs.
 * @throws invalidParams, unsupportedOption
 */
export function prepareTask(method: TaskMethod, params: Members, tasks: ServedTasks, limits: TaskLimits): PreparedCall {
  switch (method) {
    case 'embed':
      return prepareEmbed(params, tasks.embed, limits);
    case 'embed/sparse':
      return prepareSparse(params, tasks.sparseEmbed, limits);
    case 'embed/multi':
      return prepareMulti(params, tasks.multiVector, limits);
    case 'rerank':
      return prepareRerank(params, tasks.rerankers, limits);
  }
}

function prepareEmbed(params: Members, models: readonly ServedModel[], limits: TaskLimits): PreparedCall {
  const input = readInput(params, 'inputs');
  const options = readCallOptions(params);
  const served = chooseModel(models, options.model, `${vendorKey}.model`);
  const { form, notes } = readVectorForm(params, options.output);
  checkDimensions(served.manifest, options.dimensions);
  input.checkCount(limits.batchLimit);
  return async (environment) => {
    const context = { ...environment, mayTruncate: options.mayTruncate, lane: options.lane ?? laneOf(input) };
    const result = await embed(served, input, options.dimensions, context);
    return environment.stages.encode(() =>
      encodeEmbedResult(result, form, withNotes(environment.usage(result.usage), notes)),
    );
  };
}

function prepareSparse(params: Members, models: readonly ServedModel[], limits: TaskLimits): PreparedCall {
  const input = readInput(params, 'texts');
  const options = readCallOptions(params);
  const served = chooseModel(models, options.model, `${vendorKey}.model`);
  input.checkCount(limits.batchLimit);
  return async (environment) => {
    const context = { ...environment, mayTruncate: options.mayTruncate, lane: options.lane ?? laneOf(input) };
    const result = await sparseEmbed(served, input, context);
    return environment.stages.encode(() => encodeSparseResult(result.sparse, environment.usage(result.usage)));
  };
}

function prepareMulti(params: Members, models: readonly ServedModel[], limits: TaskLimits): PreparedCall {
  const input = readInput(params, 'inputs');
  const options = readCallOptions(params);
  const served = chooseModel(models, options.model, `${vendorKey}.model`);
  const { form, notes } = readVectorForm(params, options.output);
  // Rows of a multi-vector are never cut, whatever the model's pooled vectors allow.
  const { modelId, rowDimension } = served.manifest;
  checkDimensions({ modelId, dimension: rowDimension, isMatryoshka: false }, options.dimensions);
  input.checkCount(limits.batchLimit);
  const maxRowBytes = maxVectorBytes(rowDimension, form);
  return async (environment) => {
    const context = { ...environment, mayTruncate: options.mayTruncate, lane: options.lane ?? laneOf(input) };
    const result = await multiVector(served, input, { maxAnswerBytes: limits.maxAnswerBytes, maxRowBytes }, context);
    return environment.stages.encode(() =>
      encodeMultiResult(result, form, withNotes(environment.usage(result.usage), notes)),
    );
  };
}

function prepareRerank(params: Members, rerankers: readonly Reranker[], limits: TaskLimits): PreparedCall {
  const query = readQuery(params);
  const passages = readTexts(params, ['passages', 'documents'], 'passages');
  const topN = readOptionalCount(params, 'topN');
  const { reranker, notes } = chooseReranker(params, rerankers);
  const options = readCallOptions(params);
  const field = passages.name;
  passages.checkCount(limits.maxCandidates);
  return async (environment) => {
    // A person waits for an order: without a word, reranking goes first.
    const context = { ...environment, mayTruncate: options.mayTruncate, lane: options.lane ?? 'interactive' };
    const result = await rerank(reranker, { query, passages: passages.texts, field }, context);
    const order = result.order.slice(0, topN ?? result.order.length);
    const candidates = passages.texts.length;
    const usage = { ...withNotes(environment.usage(result.usage), notes), candidates, reranked: candidates };
    return environment.stages.encode(() => encodeRerankResult(result.scores, order, usage));
  };
}

/** A person who asks one thing goes before a job that sends a list. */
function laneOf(input: TextsToRun): Lane {
  return input.kind === 'query' || input.texts.length === 1 ? 'interactive' : 'bulk';
}

/** `inputs` and `texts` are full synonyms; where both are missing each method names its own. */
function readInput(params: Members, missingName: string): TextsToRun & Pick<TextList, 'checkCount'> {
  const { texts, name, checkCount } = readTexts(params, ['inputs', 'texts'], missingName);
  return { texts, kind: readKind(params), field: name, checkCount };
}

function withNotes(usage: CallUsage, notes: readonly string[]): CallUsage {
  return notes.length === 0 ? usage : { ...usage, notes };
}

/**
 * The named model, or the first where none is named.
 * @throws unsupportedOption that lists the names
 */
function chooseModel(models: readonly ServedModel[], name: string | null, field: string): ServedModel {
  const supported = models.map(({ manifest }) => manifest.modelId);
  const chosen = name === null ? models[0] : models[supported.indexOf(name)];
  if (chosen !== undefined) return chosen;
  // The gate has checked the capability, so a method without any model is a bug.
  if (name === null) throw new Error('a method without a model passed the gate');
  throw new ServiceError(
    'unsupportedOption',
    `${field}: this model is not offered; use one of ${supported.join(', ')}`,
    {
      option: name,
      field,
      supported,
    },
  );
}

function chooseReranker(
  params: Members,
  rerankers: readonly Reranker[],
): { reranker: Reranker; notes: readonly string[] } {
  const [first] = rerankers;
  if (first === undefined) throw new Error('a method without a model passed the gate');
  const others = rerankers.map(({ method }) => method).filter((method) => method !== first.method);
  const methods = [first.method, ...new Set(others)] as const;
  const isStrict = readStrict(params);
  const isMethodGiven = readOptionalString(params, 'method') !== null;
  const method = readOption(params, 'method', methods, { isStrict });
  const model = readOptionalString(params, 'model');
  const notes = method.replaced === null ? [] : [`method: ${method.value} was used instead`];
  const candidates = rerankers.filter((candidate) => !isMethodGiven || candidate.method === method.value);
  const served = chooseModel(
    candidates.map((candidate) => candidate.served),
    model,
    'model',
  );
  const reranker = candidates.find((candidate) => candidate.served === served);
  if (reranker === undefined) throw new Error('a model was chosen that is none of the candidates');
  return { reranker, notes };
}
