/** Owns the composition: the only file that constructs the parts of a running service and wires them. */
import { fileURLToPath } from 'node:url';
import { systemClock, type Clock } from './clock.ts';
import type { Settings } from './config/settings.ts';
import { engineVersion } from './cuda/wheels.ts';
import type { DeviceFleet } from './device/fleet.ts';
import type { Engine } from './engine.ts';
import { isLoopbackHost } from './config/load.ts';
import { createHttpApp } from './http/app.ts';
import { createFamilies } from './http/compat/families.ts';
import { readConsole } from './http/console.ts';
import { openapiBytes } from './http/openapi/document.ts';
import { createMemoryBudget } from './http/memory-budget.ts';
import { listen, type Listener } from './http/listen.ts';
import { createInfoBuilder, type ServerInfo } from './rpc/capabilities.ts';
import { createDispatcher, type CountCall, type RunTaskRequest } from './rpc/dispatch.ts';
import { createFrameService } from './rpc/frames.ts';
import { createServedFacts, type ServedFacts } from './rpc/served-facts.ts';
import type { FrameService } from './rpc/service.ts';
import { createSessionStore, type SessionStore } from './rpc/session.ts';
import { serveStdio, type StdioServer } from './stdio/serve.ts';
import type { Readable, Writable } from 'node:stream';
import { withResultCache } from './result-cache/cached-scheduler.ts';
import { identitiesOf } from './result-cache/identity.ts';
import { createRowStore } from './result-cache/row-store.ts';
import { createScheduler, type Scheduler } from './schedule/scheduler.ts';
import { endpointOf, openKeysOf, openTlsOf } from './server/access.ts';
import { createDevices } from './server/devices.ts';
import type { Log } from './telemetry/log.ts';
import { createMetrics, type Metrics } from './telemetry/metrics.ts';
import { createRunRecorder, recordCall } from './telemetry/record.ts';
import type { Tracer } from './telemetry/trace.ts';

/** What a service is made from. */
export interface ServiceParts {
  readonly settings: Settings;
  readonly engine: Engine;
  readonly log: Log;
  readonly server: ServerInfo;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** True: one job has the devices for itself; absent: callers wait for each other. */
  readonly isJob?: boolean;
  /** null or absent: nobody records spans. */
  readonly tracer?: Tracer | null;
}

/** Everything but a transport. */
export interface Service {
  readonly frames: FrameService;
  /** Runs what came in another protocol than RCP. */
  readonly run: RunTaskRequest;
  /** Counts such a call for which no task ran. */
  readonly countCall: CountCall;
  readonly served: ServedFacts;
  readonly sessions: SessionStore;
  readonly devices: DeviceFleet;
  readonly scheduler: Scheduler;
  readonly metrics: Metrics;
  /** True once `beginDrain` was called. */
  readonly isDraining: () => boolean;
  /** From now on calls that need a device are refused; what was accepted goes on. */
  beginDrain(): void;
}

/** A service whose devices have not been started. */
export function createService(parts: ServiceParts): Service {
  const { settings, engine, log, server, clock = systemClock, random = Math.random, tracer = null } = parts;
  const metrics = createMetrics();
  let isDraining = false;
  const { version } = server;
  const told = { clock, random, log, metrics, version, isDraining: () => isDraining };
  const devices = createDevices(settings, engine, told);
  const scheduler = createScheduler({
    pool: devices,
    clock,
    limits: settings,
    observer: createRunRecorder(metrics, log),
    isJob: parts.isJob ?? false,
  });
  const rowStore = settings.resultCacheBytes === 0 ? null : createRowStore(settings.resultCacheBytes);
  const info = createInfoBuilder(server, engine.tasks, settings, () => devices.reports(), engine.refused);
  const dispatcher = createDispatcher({
    tasks: engine.tasks,
    scheduler:
      rowStore === null
        ? scheduler
        : withResultCache(scheduler, {
            store: rowStore,
            identityOf: identitiesOf(engine.groups),
            onLookUp({ hits, misses }) {
              metrics.resultCacheHits.inc(hits);
              metrics.resultCacheMisses.inc(misses);
            },
          }),
    info,
    clock,
    limits: { ...settings, maxAnswerBytes: settings.answerLimitBytes },
    isDraining: () => isDraining,
    onCall: (record) => {
      recordCall(record, metrics, log, isDraining);
    },
    tracer,
  });
  metrics.watch({
    queuedInputs: () => scheduler.gauges.queuedItems,
    queuedTokens: () => scheduler.gauges.queuedTokens,
    queueSeconds: () => scheduler.predictedDrainMs() / 1000,
    runningInputs: () => scheduler.gauges.runningItems,
    executorsReady: () => devices.activeCount(),
    resultCacheBytes: () => rowStore?.bytes() ?? 0,
    isReady: () => devices.readiness().isReady,
    executors: () => devices.executorReports(),
    deviceMemory: engine.readGpuMemory ?? (() => Promise.resolve([])),
    residentBytes: () => process.memoryUsage.rss(),
    build: { version, node: process.version, onnxruntime: engineVersion },
  });
  return {
    frames: createFrameService(dispatcher, settings),
    run: dispatcher.run,
    countCall: dispatcher.count,
    served: createServedFacts(engine.tasks, { limits: settings, server, modelNames: settings.compatModels }),
    sessions: createSessionStore(settings.httpSession),
    devices,
    scheduler,
    metrics,
    isDraining: () => isDraining,
    beginDrain() {
      isDraining = true;
    },
  };
}

/** Longest request head. @unit bytes */
const headerBytes = 16_384;
/** Longest time that accepted work may take after a shutdown on stdio: known clients wait no longer. @unit ms */
const stdioShutdownMs = 2000;

/** Where the build puts the console, seen from the source and from what is built of it. */
const consoleFolder = fileURLToPath(new URL('../dist/console/', import.meta.url));

/**
 * Serves over HTTP; answers ping, info and health at once, whatever the state of the devices.
 * @throws ConfigurationError where the address cannot be bound, or a file of keys or certificates cannot be used
 */
export async function openHttp(service: Service, parts: ServiceParts): Promise<Listener> {
  const { settings, engine, log, clock = systemClock } = parts;
  const { bodyLimitBytes: bodyBytes, bodyTimeoutMs, headersTimeoutMs, maxConnections } = settings;
  const { answerStallTimeoutMs: answerStallMs } = settings;
  const { refusedRequests } = service.metrics;
  const tls = await openTlsOf(settings, log, clock);
  const consoleFiles = settings.console ? await readConsole(consoleFolder) : null;
  if (settings.console && consoleFiles === null) log.warn({ consoleFolder }, 'the console is not built; / answers 404');
  const keys = await openKeysOf(settings, service.metrics, log, clock);
  const families = createFamilies(settings);
  const app = createHttpApp({
    service: service.frames,
    sessions: service.sessions,
    readiness: () => service.devices.readiness(),
    metricsText: () => service.metrics.registry.metrics(),
    limits: { bodyBytes, bodyTimeoutMs },
    memory: createMemoryBudget(settings.maxBufferedBytes),
    identify: keys.identify,
    corsOrigins: settings.corsOrigins,
    allowedHosts: settings.allowedHosts,
    // No page of a browser reaches a Unix socket, so that no name needs a check there.
    isLoopbackBind: settings.socket === null && isLoopbackHost(settings.host),
    metricsOpen: settings.metricsOpen,
    consoleFiles,
    compat: { families, run: service.run, countCall: service.countCall, served: service.served },
    openapi: openapiBytes(families, {
      served: service.served,
      rerankMethods: [...new Set(engine.tasks.rerankers.map(({ method }) => method))],
      limits: settings,
      hasKey: settings.apiKey !== null || settings.apiKeyFile !== null,
      isMetricsOpen: settings.metricsOpen,
      hasConsole: consoleFiles !== null,
      openaiTokenIds: settings.openaiTokenIds,
    }),
    isDraining: service.isDraining,
    log,
    onRefused: (reason) => {
      refusedRequests.inc({ reason });
    },
    clock,
  });
  const limits = { maxConnections, headerBytes, headersTimeoutMs, bodyTimeoutMs, answerStallMs };
  const onStalled = () => {
    refusedRequests.inc({ reason: 'stalled' });
  };
  try {
    const listener = await listen({ app, endpoint: endpointOf(settings), tls, clock, limits, onStalled });
    return {
      ...listener,
      close(options) {
        keys.close();
        return listener.close(options);
      },
    };
  } catch (error) {
    keys.close();
    throw error;
  }
}

/** Serves one session over two streams. */
export function openStdio(
  service: Service,
  streams: { input: Readable; output: Writable },
  { settings, log, clock = systemClock }: ServiceParts,
): StdioServer {
  const { bodyLimitBytes: frameBytes, maxInFlightFrames, drainMs } = settings;
  const limits = { frameBytes, maxInFlightFrames, drainMs, shutdownMs: stdioShutdownMs };
  return serveStdio({ ...streams, service: service.frames, sessions: service.sessions, clock, limits, log });
}
