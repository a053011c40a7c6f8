/** Owns what `info` says: capabilities frozen at the start, and the live state of the devices. */
import type { DeviceReport } from '../device/pool.ts';
import type { ServedModel, ServedTasks } from '../task/context.ts';
import { rowTokensOf } from '../task/row-tokens.ts';
import { integerOutputs } from '../tensor/quantize.ts';
import { vectorEncodings } from './encode.ts';
import { logLevels } from './log-level.ts';

/** Version of the protocol this server speaks. */
export const protocolVersion = 1;
/** Vendor key of everything that RCP does not define. */
export const vendorKey = 'x-trivec';
/** Names of the options under the vendor key; every one of them works. */
export const vendorOptions = ['truncate', 'dimensions', 'priority', 'output', 'model'] as const;
/** Forms of a vector that `x-trivec.output` names, the default first. */
export const vectorOutputs = ['float32', ...integerOutputs] as const;

/** Limits that clients may read and that are enforced before any work. */
export interface AdvertisedLimits {
  readonly batchLimit: number;
  readonly maxCandidates: number;
  readonly maxBatchMembers: number;
  readonly bodyLimitBytes: number;
  readonly deadlineMs: number;
}

/** Name and version of this server. */
export interface ServerInfo {
  readonly name: string;
  readonly version: string;
}

/** The capabilities object; a method is offered exactly when its key is here. */
export type Capabilities = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Capabilities of what is configured; they stay the same for the life of the process. */
export function buildCapabilities(tasks: ServedTasks, limits: AdvertisedLimits): Capabilities {
  const { rerankers } = tasks;
  const [embed] = tasks.embed;
  const [sparseEmbed] = tasks.sparseEmbed;
  const [multiVector] = tasks.multiVector;
  const texts = { batchLimit: limits.batchLimit, modalities: ['text'] };
  const [defaultReranker] = rerankers;
  return {
    ...(embed && {
      embed: {
        dimension: embed.manifest.dimension,
        identity: embed.identity,
        normalized: embed.manifest.isNormalized,
        encodings: vectorEncodings,
        ...texts,
      },
    }),
    ...(sparseEmbed && {
      sparseEmbed: { identity: sparseEmbed.identity, vocabulary: sparseEmbed.manifest.vocabularySize, ...texts },
    }),
    ...(multiVector && {
      multiVector: {
        dimension: multiVector.manifest.rowDimension,
        identity: multiVector.identity,
        similarity: 'dot',
        encodings: vectorEncodings,
        ...texts,
      },
    }),
    ...(defaultReranker && {
      rerank: {
        methods: [...new Set(rerankers.map((reranker) => reranker.method))],
        maxCandidates: limits.maxCandidates,
        models: rerankers.map((reranker) => reranker.served.manifest.modelId),
        identity: defaultReranker.served.identity,
      },
    }),
    streaming: {},
    log: { levels: logLevels },
  };
}

/** The parts of `info` and `initialize`; `result` builds one, with the devices as they are now. */
export interface InfoBuilder {
  readonly capabilities: Capabilities;
  result(sessionToken: string | null): Buffer;
}

/** A device, or a provider without one, that was considered at the start and not taken. */
export interface UnusedDevice {
  readonly id: string;
  /** One sentence with the fix. */
  readonly reason: string;
}

/** Builds `info` results. */
export function createInfoBuilder(
  server: ServerInfo,
  tasks: ServedTasks,
  limits: AdvertisedLimits,
  deviceReports: () => readonly DeviceReport[],
  unusedDevices: readonly UnusedDevice[] = [],
): InfoBuilder {
  const capabilities = buildCapabilities(tasks, limits);
  const maxTokens = ([first]: readonly ServedModel[]) => first?.manifest.maxTokens;
  const vendor = {
    maxInputTokens: {
      embed: maxTokens(tasks.embed),
      sparseEmbed: maxTokens(tasks.sparseEmbed),
      multiVector: maxTokens(tasks.multiVector),
      rerank: maxTokens(tasks.rerankers.map(({ served }) => served)),
    },
    models: {
      embed: tasks.embed.map(describeVectors),
      sparseEmbed: tasks.sparseEmbed.map(describeTerms),
      multiVector: tasks.multiVector.map(describeRows),
      rerank: tasks.rerankers.map(({ method, served }) => ({
        method,
        ...(method === 'colbert' ? describeQueries(served) : describeModel(served)),
      })),
    },
    limits: {
      batchMembers: limits.maxBatchMembers,
      bodyBytes: limits.bodyLimitBytes,
      deadlineMs: limits.deadlineMs,
    },
    options: vendorOptions,
  };
  return {
    capabilities,
    result(sessionToken) {
      const session = sessionToken === null ? {} : { session: sessionToken };
      const result = {
        protocolVersion,
        server,
        capabilities,
        _meta: { conformance: 'L0', ...session },
        [vendorKey]: { devices: deviceReports(), unusedDevices, ...vendor },
      };
      return Buffer.from(JSON.stringify(result));
    },
  };
}

/** One model in `info`; its `id` is what `x-trivec.model` and rerank's `model` take. */
function describeModel({ manifest, identity }: ServedModel) {
  return { id: manifest.modelId, identity, maxInputTokens: manifest.maxTokens };
}

/** Sparse models may keep the heaviest terms only, and may read less of a query that they look up than of a text. */
function describeTerms(served: ServedModel) {
  const { sparse } = served.manifest;
  const { maxTerms, maxQueryTokens } = sparse?.form === 'terms' ? sparse : { maxTerms: null, maxQueryTokens: null };
  return {
    ...describeModel(served),
    ...(maxTerms === null ? {} : { maxTerms }),
    ...(maxQueryTokens === null ? {} : { maxQueryTokens }),
  };
}

/** A client has to know beforehand whether `dimensions` may be asked for. */
function describeVectors(served: ServedModel) {
  const { dimension, isMatryoshka } = served.manifest;
  return { ...describeModel(served), dimension, matryoshka: isMatryoshka };
}

/** Who shows rows beside their tokens has to know which token each of them is of. */
function describeRows(served: ServedModel) {
  const rowTokens = rowTokensOf(served);
  return {
    ...describeQueries(served),
    dimension: served.manifest.rowDimension,
    ...(rowTokens === null ? {} : { rowTokens }),
  };
}

/** Late-interaction models may read less of a query than of a document. */
function describeQueries(served: ServedModel) {
  const { maxQueryTokens } = served.manifest.tokenRows;
  return { ...describeModel(served), ...(maxQueryTokens === null ? {} : { maxQueryTokens }) };
}
