/** Owns the client: its methods, on whichever way to the server it was given. */
import { requireBounds } from './bounds.ts';
import {
  chooseEncoding,
  methodOf,
  requireCapability,
  requireKind,
  requireTexts,
  rerankParams,
  vendorParams,
} from './check.ts';
import { systemEnvironment, type Environment } from './clock.ts';
import { errorOf, refusal } from './error.ts';
import { createGate } from './gate.ts';
import { compareIdentities, type IdentityMismatch } from './identity.ts';
import { readInfo, vendorKey, type Capabilities, type ModelCapability, type ServerInfo } from './info.ts';
import { openCall, openOnce, runList, sendOnce, type Caller, type ListAnswer } from './list-call.ts';
import { findModel, identityOf, type ModelChoice } from './models.ts';
import type {
  CallOptions,
  ClientOptions,
  EmbedOptions,
  Identities,
  ModelCallOptions,
  MultiVectorOptions,
  RerankOptions,
  TextsOptions,
  VectorOutput,
} from './options.ts';
import {
  mergeUsage,
  readMatrices,
  readScores,
  readSparse,
  readVectors,
  toldIdentity,
  type EmbedResult,
  type MultiVectorResult,
  type RerankResult,
  type SparseEmbedResult,
} from './results.ts';
import { defaultRetryPolicy, withRetries } from './retry.ts';
import { jsonBytes, mergeOrders, splitList, type Part } from './split.ts';
import type { Transport } from './transport.ts';

/** A connection to one server. All calls may be made at the same time. */
export interface Client {
  /** What the server said when the client connected. */
  readonly info: ServerInfo;
  readonly capabilities: Capabilities;
  /** Identity of the model behind a capability, to be kept with an index; undefined where the server does not say. */
  identity(capability: ModelCapability, model?: string): string | undefined;
  /** Warns of every model that is not the one that an index was made with, and gives them back. */
  checkIdentity(expected: Identities): readonly IdentityMismatch[];
  /** One dense vector for each text. */
  embed<O extends VectorOutput = 'float32'>(
    texts: readonly string[],
    options?: EmbedOptions<O>,
  ): Promise<EmbedResult<O>>;
  /** One sparse vector for each text. */
  sparseEmbed(texts: readonly string[], options?: TextsOptions): Promise<SparseEmbedResult>;
  /** One matrix for each text: a row for each token. */
  multiVector<O extends VectorOutput = 'float32'>(
    texts: readonly string[],
    options?: MultiVectorOptions<O>,
  ): Promise<MultiVectorResult<O>>;
  /** Scores every passage against the query, and orders them. */
  rerank(query: string, passages: readonly string[], options?: RerankOptions): Promise<RerankResult>;
  /** Time that the server took to answer. @unit ms */
  ping(options?: CallOptions): Promise<number>;
  /** Ends the server where it is a process of this client's own; over HTTP there is nothing to end. */
  close(): Promise<void>;
}

const defaultMaxParallelRequests = 4;
const defaultAnswerTimeoutMs = 60_000;
/** Texts in one request to a server that names no limit. */
const assumedBatchLimit = 256;
/** Size of a body to a server that names no limit. @unit bytes */
const assumedBodyBytes = 1_048_576;
/** Room for what a request holds beside its params: id, deadline, token. @unit bytes */
const frameBytes = 256;

/**
 * Connects: reads `info` once, and compares it with what an index was made with.
 * @throws RcpError; the signal's reason
 */
export async function openClient(
  transport: Transport,
  options: ClientOptions,
  environment: Environment = systemEnvironment,
): Promise<Client> {
  requireBounds(options);
  const { maxAttempts, maxWaitMs } = { ...options.retry };
  const caller: Caller = {
    transport,
    gate: createGate(options.maxParallelRequests ?? defaultMaxParallelRequests),
    policy: {
      maxAttempts: maxAttempts ?? defaultRetryPolicy.maxAttempts,
      maxWaitMs: maxWaitMs ?? defaultRetryPolicy.maxWaitMs,
    },
    answerTimeoutMs: options.answerTimeoutMs ?? defaultAnswerTimeoutMs,
    environment,
  };
  const scope = openCall(caller, options.signal === undefined ? {} : { signal: options.signal });
  try {
    const { policy } = caller;
    const result = await withRetries(() => openOnce(caller, scope), { policy, environment, scope });
    const info = readInfo(result, transport.address);
    const client = clientOf(caller, info, options);
    if (options.expectIdentity !== undefined) client.checkIdentity(options.expectIdentity);
    return client;
  } catch (error) {
    // Who waits to connect need not wait for the end of a server of its own.
    transport.close().catch(() => undefined);
    throw error;
  } finally {
    scope.close();
  }
}

function clientOf(caller: Caller, info: ServerInfo, clientOptions: ClientOptions): Client {
  const warn = clientOptions.onWarning ?? ((message: string) => console.warn(`trivec: ${message}`));
  const bodyBytes = info[vendorKey]?.limits?.bodyBytes ?? assumedBodyBytes;
  const isStreaming = info.capabilities.streaming !== undefined;
  let closing: Promise<void> | null = null;

  const requireOpen = () => {
    if (closing !== null) throw errorOf('unavailable', 'This client is closed', { retryable: false, wasSent: false });
  };

  /** Cuts a list and runs its parts; `params` goes with each. */
  const run = (
    list: { readonly field: string; readonly texts: readonly string[]; readonly limit: number | undefined },
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: ModelCallOptions,
  ): Promise<ListAnswer> => {
    const { field, texts, limit = assumedBatchLimit } = list;
    const maxCount = Math.max(1, Math.min(limit, clientOptions.maxTextsPerRequest ?? Infinity));
    const maxBytes = bodyBytes - jsonBytes(params) - frameBytes;
    if (maxBytes <= 0) {
      const message = `${field}: no text fits into a request beside its other members`;
      throw refusal('tooLarge', message, { field, limit: bodyBytes });
    }
    const parts = splitList(requireTexts(texts, field), { maxCount, maxBytes, field });
    const paramsOf = (part: Part) => ({ ...params, [field]: part.texts });
    return runList(caller, { method, parts, paramsOf, options, isStreaming });
  };

  const about = (capability: ModelCapability, choice: ModelChoice, { answers, latencyMs, retries }: ListAnswer) => {
    const told = toldIdentity(answers);
    return {
      identity: told ?? identityOf(info, capability, choice),
      isIdentityTold: told !== undefined,
      usage: mergeUsage(answers, latencyMs, retries),
    };
  };

  return {
    info,
    capabilities: info.capabilities,
    identity: (capability, model) => identityOf(info, capability, { model }),
    checkIdentity(expected) {
      const mismatches = compareIdentities(info, expected);
      for (const { message } of mismatches) warn(message);
      return mismatches;
    },
    async embed<O extends VectorOutput = 'float32'>(texts: readonly string[], options: EmbedOptions<O> = {}) {
      requireOpen();
      const capability = requireCapability(info, 'embed');
      const { kind, output = 'float32' as O, dimensions, model } = options;
      requireKind(kind);
      const encoding = chooseEncoding(capability, options.encoding, output);
      const params = { ...(kind && { kind }), encoding, ...vendorParams(info, 'embed', options) };
      const list = { field: 'inputs', texts, limit: capability.batchLimit };
      const answer = await run(list, methodOf.embed, params, options);
      const dimension = dimensions ?? findModel(info, 'embed', { model })?.dimension ?? capability.dimension;
      const vectors = answer.answers.flatMap((part) => readVectors(part, output, dimension));
      return { vectors, dimension, ...about('embed', { model }, answer) };
    },
    async sparseEmbed(texts, options = {}) {
      requireOpen();
      const capability = requireCapability(info, 'sparseEmbed');
      const { kind, model } = options;
      requireKind(kind);
      const params = { ...(kind && { kind }), ...vendorParams(info, 'sparseEmbed', options) };
      const list = { field: 'inputs', texts, limit: capability.batchLimit ?? info.capabilities.embed?.batchLimit };
      const answer = await run(list, methodOf.sparseEmbed, params, options);
      return { sparse: answer.answers.flatMap(readSparse), ...about('sparseEmbed', { model }, answer) };
    },
    async multiVector<O extends VectorOutput = 'float32'>(
      texts: readonly string[],
      options: MultiVectorOptions<O> = {},
    ) {
      requireOpen();
      const capability = requireCapability(info, 'multiVector');
      const { kind, output = 'float32' as O, model } = options;
      requireKind(kind);
      const encoding = chooseEncoding(capability, options.encoding, output);
      const params = { ...(kind && { kind }), encoding, ...vendorParams(info, 'multiVector', options) };
      const list = { field: 'inputs', texts, limit: capability.batchLimit };
      const answer = await run(list, methodOf.multiVector, params, options);
      const dimension = findModel(info, 'multiVector', { model })?.dimension ?? capability.dimension;
      const matrices = answer.answers.flatMap((part) => readMatrices(part, output, dimension));
      return { matrices, dimension, ...about('multiVector', { model }, answer) };
    },
    async rerank(query, passages, options = {}) {
      requireOpen();
      const params = { query, ...rerankParams(info, options) };
      requireTexts([query], 'query');
      const limit = requireCapability(info, 'rerank').maxCandidates;
      const answer = await run({ field: 'passages', texts: passages, limit }, methodOf.rerank, params, options);
      const parts = answer.answers.map((part) => readScores(part, options.topN));
      const scores = parts.flatMap((part) => part.scores);
      const order = mergeOrders(parts, scores, options.topN ?? scores.length);
      const results = order.map((index) => ({ index, score: scores[index] ?? 0 }));
      return { scores, order, results, ...about('rerank', options, answer) };
    },
    async ping(options = {}) {
      requireOpen();
      const scope = openCall(caller, options);
      const { clock } = caller.environment;
      const startedMs = clock.nowMs();
      try {
        const request = { method: 'ping', params: {}, deadlineMs: Infinity, onProgress: null };
        await sendOnce(caller, request, scope);
        return clock.nowMs() - startedMs;
      } finally {
        scope.close();
      }
    },
    async close() {
      closing ??= caller.transport.close();
      await closing;
    },
  };
}
