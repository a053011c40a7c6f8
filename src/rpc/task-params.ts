/** Owns reading the params of a method that runs a model: what is asked for, and how its result is written. */
import { checkDimensions } from '../task/embed.ts';
import type { Reranker, ServedModel, ServedTasks } from '../task/context.ts';
import { vendorKey } from './capabilities.ts';
import { chooseModel, chooseReranker } from './choose-model.ts';
import {
  encodeEmbedResult,
  encodeMultiResult,
  encodeRerankResult,
  encodeSparseResult,
  maxVectorBytes,
  type CallUsage,
  type ResultFacts,
} from './encode.ts';
import type { TaskMethod } from './methods.ts';
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
import type { CallStages } from '../telemetry/stages.ts';
import type { InputList, RequestOf, ResultOf } from './task-request.ts';

/** Gives the result of a request. */
export type RunRequest = <M extends TaskMethod>(request: RequestOf<M>) => Promise<ResultOf<M>>;

/** A call whose params are good: `run` is told what to run, and the bytes of what it gives come out. */
export type PreparedCall = (run: RunRequest, stages: CallStages) => Promise<Buffer>;

function prepare<M extends TaskMethod>(
  request: RequestOf<M>,
  encode: (result: ResultOf<M>) => Buffer | Promise<Buffer>,
): PreparedCall {
  return async (run, stages) => {
    const result = await run<M>(request);
    return stages.encode(() => encode(result));
  };
}

/** Bounds that the inputs of a call are checked against. */
export interface InputLimits {
  readonly batchLimit: number;
  readonly maxCandidates: number;
}

/**
 * Reads the params of a task method, completely, before anything runs.
 * @throws invalidParams, unsupportedOption
 */
export function readTaskCall(
  method: TaskMethod,
  params: Members,
  tasks: ServedTasks,
  limits: InputLimits,
): PreparedCall {
  switch (method) {
    case 'embed':
      return readEmbed(params, tasks.embed, limits);
    case 'embed/sparse':
      return readSparse(params, tasks.sparseEmbed, limits);
    case 'embed/multi':
      return readMulti(params, tasks.multiVector, limits);
    case 'rerank':
      return readRerank(params, tasks.rerankers, limits);
  }
}

function readEmbed(params: Members, models: readonly ServedModel[], limits: InputLimits): PreparedCall {
  const { input, checkCount } = readInput(params, 'inputs');
  const options = readCallOptions(params);
  const served = chooseModel(models, options.model, `${vendorKey}.model`);
  const { form, notes } = readVectorForm(params, options.output);
  checkDimensions(served.manifest, options.dimensions);
  checkCount(limits.batchLimit);
  const { dimensions } = options;
  return prepare<'embed'>({ method: 'embed', ...input, ...runOptionsOf(options, served), dimensions }, (result) =>
    encodeEmbedResult(result, form, factsOf(served, withNotes(result.usage, notes))),
  );
}

function readSparse(params: Members, models: readonly ServedModel[], limits: InputLimits): PreparedCall {
  const { input, checkCount } = readInput(params, 'texts');
  const options = readCallOptions(params);
  const served = chooseModel(models, options.model, `${vendorKey}.model`);
  checkCount(limits.batchLimit);
  return prepare<'embed/sparse'>(
    { method: 'embed/sparse', ...input, ...runOptionsOf(options, served) },
    ({ sparse, usage }) => encodeSparseResult(sparse, factsOf(served, usage)),
  );
}

function readMulti(params: Members, models: readonly ServedModel[], limits: InputLimits): PreparedCall {
  const { input, checkCount } = readInput(params, 'inputs');
  const options = readCallOptions(params);
  const served = chooseModel(models, options.model, `${vendorKey}.model`);
  const { form, notes } = readVectorForm(params, options.output);
  // Rows of a multi-vector are never cut, whatever the model's pooled vectors allow.
  const { modelId, rowDimension } = served.manifest;
  checkDimensions({ modelId, dimension: rowDimension, isMatryoshka: false }, options.dimensions);
  checkCount(limits.batchLimit);
  const maxRowBytes = maxVectorBytes(rowDimension, form);
  return prepare<'embed/multi'>(
    { method: 'embed/multi', ...input, ...runOptionsOf(options, served), maxRowBytes },
    (result) => encodeMultiResult(result, form, factsOf(served, withNotes(result.usage, notes))),
  );
}

function readRerank(params: Members, rerankers: readonly Reranker[], limits: InputLimits): PreparedCall {
  const query = readQuery(params);
  const passages = readTexts(params, ['passages', 'documents'], 'passages');
  const topN = readOptionalCount(params, 'topN');
  const { rerankMethod, served, notes } = readReranker(params, rerankers);
  const options = readCallOptions(params);
  passages.checkCount(limits.maxCandidates);
  const candidates = passages.texts.length;
  const input = { query, passages: { values: passages.texts, field: passages.name } };
  return prepare<'rerank'>({ method: 'rerank', ...input, rerankMethod, ...runOptionsOf(options, served) }, (result) => {
    const order = result.order.slice(0, topN ?? result.order.length);
    const usage = { ...withNotes(result.usage, notes), candidates, reranked: candidates };
    return encodeRerankResult(result.scores, order, factsOf(served, usage));
  });
}

interface Input {
  readonly inputs: InputList;
  readonly kind: 'query' | 'document' | null;
}

/** `inputs` and `texts` are full synonyms; where both are missing each method names its own. */
function readInput(
  params: Members,
  missingName: string,
): { readonly input: Input; readonly checkCount: TextList['checkCount'] } {
  const { texts, name, checkCount } = readTexts(params, ['inputs', 'texts'], missingName);
  return { input: { inputs: { values: texts, field: name }, kind: readKind(params) }, checkCount };
}

function runOptionsOf(
  { mayTruncate, lane }: ReturnType<typeof readCallOptions>,
  { manifest: { modelId } }: ServedModel,
): Pick<RequestOf<'embed/sparse'>, 'model' | 'truncation' | 'lane'> {
  return { model: modelId, truncation: mayTruncate ? null : 'refuse', lane };
}

/** A caller who sends many lists knows from each answer that all are of one model. */
const factsOf = ({ identity }: ServedModel, usage: CallUsage): ResultFacts => ({ usage, [vendorKey]: { identity } });

function withNotes(usage: CallUsage, notes: readonly string[]): CallUsage {
  return notes.length === 0 ? usage : { ...usage, notes };
}

function readReranker(
  params: Members,
  rerankers: readonly Reranker[],
): { rerankMethod: Reranker['method'] | null; served: ServedModel; notes: readonly string[] } {
  const [first] = rerankers;
  if (first === undefined) throw new Error('a method without a model passed the gate');
  const others = rerankers.map(({ method }) => method).filter((method) => method !== first.method);
  const methods = [first.method, ...new Set(others)] as const;
  const isStrict = readStrict(params);
  const isMethodGiven = readOptionalString(params, 'method') !== null;
  const method = readOption(params, 'method', methods, { isStrict });
  const model = readOptionalString(params, 'model');
  const notes = method.replaced === null ? [] : [`method: ${method.value} was used instead`];
  const rerankMethod = isMethodGiven ? method.value : null;
  const { served } = chooseReranker(rerankers, rerankMethod, model);
  return { rerankMethod, served, notes };
}
