/** Owns the engine in this process as a source of vectors: the service of `serve` without a transport. */
import { setTimeout as pause } from 'node:timers/promises';
import { BulkFailure } from '../bulk/row.ts';
import type { Vectors } from '../bulk/row.ts';
import { nothing } from '../bulk/source/nothing.ts';
import { refusedText } from '../bulk/source/source.ts';
import type { Embedded, MethodName, VectorSource, VectorWish } from '../bulk/source/source.ts';
import type { Settings } from '../config/settings.ts';
import { openEngine, type Engine } from '../engine.ts';
import { ConfigurationError, ServiceError } from '../errors.ts';
import { createService, type Service } from '../server.ts';
import { createLog } from '../telemetry/log.ts';
import { processEntries } from './entries.ts';

/** Calls under way: one is tokenised while another runs and the third one waits behind it. */
const parallelCalls = 3;
/** A call of a job has as long as it takes. @unit ms */
const deadlineMs = 3_600_000;
/** Longest time in which a device may be away before the job is given up. @unit ms */
const patienceMs = 120_000;
/** @unit ms */
const retryMs = 500;

/** @unit ms */
const keepAliveMs = 60_000;

/** A service whose devices run. */
export interface OpenService {
  readonly service: Service;
  readonly engine: Engine;
  close(): Promise<void>;
}

/** The settings of a job: the models that it needs, and nothing that bounds callers. */
export function jobSettings(settings: Settings, method: MethodName | 'rerank'): Settings {
  const only = (wanted: MethodName | 'rerank', models: Settings['embedModel']) => (wanted === method ? models : []);
  return {
    ...settings,
    embedModel: only('dense', settings.embedModel),
    sparseModel: only('sparse', settings.sparseModel),
    multiModel:
      method === 'rerank' && settings.rerankModel.length === 0
        ? settings.multiModel
        : only('multi', settings.multiModel),
    rerankModel: only('rerank', settings.rerankModel),
    deadlineMs,
  };
}

/**
 * Opens the engine and starts its devices.
 * @throws ConfigurationError
 */
export async function openService(settings: Settings, version: string): Promise<OpenService> {
  const log = createLog(settings.logLevel);
  const engine = await openEngine(settings, processEntries, log);
  const service = createService({ settings, engine, log, server: { name: 'trivec', version }, isJob: true });
  // While an executor is started again nothing else keeps the process.
  const keepAlive = setInterval(() => undefined, keepAliveMs);
  let stopped: Promise<void> | null = null;
  const close = () => {
    clearInterval(keepAlive);
    service.beginDrain();
    stopped ??= service.devices.stop();
    return stopped;
  };
  const { failures } = await service.devices.start();
  if (service.devices.lostModels().length > 0) {
    await close();
    throw new ConfigurationError([...new Set(failures.map(({ deviceId, reason }) => `${deviceId}: ${reason}`))]);
  }
  return { service, engine, close };
}

/**
 * The engine of these settings as a source.
 * @throws ConfigurationError
 */
export async function openEmbedded(settings: Settings, wish: VectorWish, version: string): Promise<VectorSource> {
  const { method, model, dimensions } = wish;
  const open = await openService(settings, version);
  const served = {
    dense: open.engine.tasks.embed,
    sparse: open.engine.tasks.sparseEmbed,
    multi: open.engine.tasks.multiVector,
  }[method];
  const chosen = served.find(({ manifest }) => model === null || manifest.modelId === model);
  if (chosen === undefined) {
    await open.close();
    const known = served.map(({ manifest }) => manifest.modelId).join(', ') || 'none';
    throw new ConfigurationError([
      model === null
        ? `no model is configured for ${method} vectors`
        : `--model: ${model} is not configured for ${method} vectors; there is ${known}`,
    ]);
  }
  try {
    // A call of no texts judges what is asked for, before anything is written.
    await embed(open.service, [], wish, new AbortController().signal);
  } catch (error) {
    await open.close();
    throw error;
  }
  const { dimension, rowDimension } = chosen.manifest;
  return {
    identity: chosen.identity,
    dimension: { dense: dimensions ?? dimension, sparse: 0, multi: rowDimension }[method],
    parallelCalls,
    embed: async (texts, signal) =>
      texts.length === 0 ? nothing(wish) : embedPatiently(open.service, texts, wish, signal),
    close: () => open.close(),
  };
}

async function embedPatiently(
  service: Service,
  texts: readonly string[],
  wish: VectorWish,
  signal: AbortSignal,
): Promise<Embedded> {
  const startMs = performance.now();
  for (;;) {
    signal.throwIfAborted();
    try {
      return await embed(service, texts, wish, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ServiceError)) throw error;
      const isWorthRetrying = error.errorName === 'overloaded' || error.errorName === 'unavailable';
      if (!isWorthRetrying || performance.now() - startMs > patienceMs) {
        throw refusedText(error, error.data.field, 0) ?? new BulkFailure(error.message);
      }
      await pause(error.data.retryAfterMs ?? retryMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

async function embed(
  service: Service,
  texts: readonly string[],
  { method, kind, model, dimensions }: VectorWish,
  signal: AbortSignal,
): Promise<Embedded> {
  const context = { transport: 'stdio', signal, requestId: 'bulk' } as const;
  const inputs = { values: texts, field: 'inputs' };
  const request = { inputs, kind, model, truncation: null, lane: 'bulk' } as const;
  switch (method) {
    case 'dense': {
      const { vectors, usage } = await service.run({ ...request, method: 'embed', dimensions }, context);
      return result({ kind: 'dense', vectors }, usage.inputTokens);
    }
    case 'sparse': {
      const { sparse, usage } = await service.run({ ...request, method: 'embed/sparse' }, context);
      return result({ kind: 'sparse', sparse }, usage.inputTokens);
    }
    case 'multi': {
      const { matrices, usage } = await service.run({ ...request, method: 'embed/multi' }, context);
      return result({ kind: 'multi', matrices }, usage.inputTokens);
    }
  }
}

const result = (vectors: Vectors, tokens: number): Embedded => ({ vectors, tokens });
