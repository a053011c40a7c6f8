/** Owns the composition: the only file that constructs the parts of a running service and wires them. */
import { join } from 'node:path';
import { systemClock, type Clock } from './clock.ts';
import type { Settings } from './config/settings.ts';
import { engineVersion } from './cuda/wheels.ts';
import { openCostStore } from './device/cost-store.ts';
import { createDeviceCosts } from './device/costs.ts';
import { usableCores } from './device/cpu.ts';
import { createDeviceFleet, type DeviceFleet } from './device/fleet.ts';
import { defaultDeviceLimits } from './device/limits.ts';
import { createDeviceManager } from './device/manager.ts';
import { residentBytesOf } from './device/memory.ts';
import { batchLimitsOf, placeExecutors } from './device/placement.ts';
import type { Engine } from './engine.ts';
import { isLoopbackHost } from './config/load.ts';
import { ConfigurationError } from './errors.ts';
import { createHttpApp } from './http/app.ts';
import type { Endpoint } from './http/bind.ts';
import { openKeys, readKeyFile, type Keys } from './http/keys.ts';
import { createMemoryBudget } from './http/memory-budget.ts';
import { listen, type Listener } from './http/listen.ts';
import { openTls, readCredentials, type TlsSource } from './http/tls.ts';
import { createInfoBuilder, type ServerInfo } from './rpc/capabilities.ts';
import { createDispatcher } from './rpc/dispatch.ts';
import { createFrameService } from './rpc/frames.ts';
import { quotaReasons } from './rpc/quota.ts';
import type { FrameService } from './rpc/service.ts';
import { createSessionStore, type SessionStore } from './rpc/session.ts';
import { serveStdio, type StdioServer } from './stdio/serve.ts';
import type { Readable, Writable } from 'node:stream';
import { withResultCache } from './result-cache/cached-scheduler.ts';
import { identitiesOf } from './result-cache/identity.ts';
import { createRowStore } from './result-cache/row-store.ts';
import { createScheduler, type Scheduler } from './schedule/scheduler.ts';
import type { Log } from './telemetry/log.ts';
import { createMetrics, type Metrics } from './telemetry/metrics.ts';
import { createDeviceRecorder, createRunRecorder, recordCall } from './telemetry/record.ts';
import type { Tracer } from './telemetry/trace.ts';

/** What a service is made from. */
export interface ServiceParts {
  readonly settings: Settings;
  readonly engine: Engine;
  readonly log: Log;
  readonly server: ServerInfo;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** null or absent: nobody records spans. */
  readonly tracer?: Tracer | null;
}

/** Everything but a transport. */
export interface Service {
  readonly frames: FrameService;
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
    residentBytes: () => process.memoryUsage.rss(),
    build: { version, node: process.version, onnxruntime: engineVersion },
  });
  return {
    frames: createFrameService(dispatcher, settings),
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

/** What the metrics call a key without a name. */
const unnamedKey = 'unnamed';

/**
 * What is wrong with the files of keys and certificates that the settings name; a start looks before the models are
 * loaded.
 */
export async function accessProblems({ apiKeyFile, tlsCert, tlsKey }: Settings): Promise<string[]> {
  const reads = [
    ...(apiKeyFile === null ? [] : [readKeyFile(apiKeyFile)]),
    ...(tlsCert === null || tlsKey === null
      ? []
      : [readCredentials({ certFile: tlsCert, keyFile: tlsKey }, Date.now())]),
  ];
  const outcomes = await Promise.allSettled(reads);
  return outcomes.flatMap((outcome) => {
    if (outcome.status === 'fulfilled') return [];
    if (outcome.reason instanceof ConfigurationError) return outcome.reason.problems;
    throw outcome.reason;
  });
}

/**
 * Serves over HTTP; answers ping, info and health at once, whatever the state of the devices.
 * @throws ConfigurationError where the address cannot be bound, or a file of keys or certificates cannot be used
 */
export async function openHttp(service: Service, parts: ServiceParts): Promise<Listener> {
  const { settings, log, clock = systemClock } = parts;
  const { bodyLimitBytes: bodyBytes, bodyTimeoutMs, headersTimeoutMs, maxConnections } = settings;
  const { answerStallTimeoutMs: answerStallMs } = settings;
  const { refusedRequests } = service.metrics;
  const tls = await openTlsOf(settings, log, clock);
  const keys = await openKeysOf(service, parts);
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

function endpointOf({ socket, socketMode, host, port }: Settings): Endpoint {
  if (socket === null) return { kind: 'tcp', host, port };
  return { kind: 'unix', path: socket, mode: Number.parseInt(socketMode, 8) };
}

async function openTlsOf({ tlsCert, tlsKey }: Settings, log: Log, clock: Clock): Promise<TlsSource | null> {
  if (tlsCert === null || tlsKey === null) return null;
  return openTls({ certFile: tlsCert, keyFile: tlsKey }, { clock, log, wallClockMs: () => Date.now() });
}

function openKeysOf({ metrics }: Service, { settings, log, clock = systemClock }: ServiceParts): Promise<Keys> {
  const { keyRequestsPerSecond, keyRequestBurst, keyQueuedTokens } = settings;
  return openKeys(
    { apiKeys: settings.apiKey, file: settings.apiKeyFile },
    {
      clock,
      log,
      limits: {
        requestsPerSecond: keyRequestsPerSecond,
        requestBurst: keyRequestBurst,
        queuedTokens: keyQueuedTokens,
      },
      onRefused: (name, reason) => {
        metrics.keyRefusals.inc({ key: name ?? unnamedKey, reason });
      },
      onForgotten: (key) => {
        for (const reason of quotaReasons) metrics.keyRefusals.remove({ key, reason });
      },
    },
  );
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

interface DeviceParts {
  readonly version: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly isDraining: () => boolean;
}

function createDevices(settings: Settings, engine: Engine, parts: DeviceParts): DeviceFleet {
  const { clock, random, metrics, log, isDraining } = parts;
  const observer = createDeviceRecorder(metrics, log, isDraining);
  const { runTimeoutMs, loadTimeoutMs, reproveIdleMs, maxExecutorBytes } = settings;
  const limits = { ...defaultDeviceLimits, runTimeoutMs, loadTimeoutMs, reproveIdleMs, maxExecutorBytes };
  const shared = { clock, random, limits, residentBytesOf, observer };
  const store = openCostStore(join(settings.cacheDir, 'costs'), {
    version: `${parts.version} ${engineVersion}`,
    onUnwritable: (reason) => {
      parts.log.info({ reason }, 'how long runs take is measured again at the next start');
    },
  });
  return createDeviceFleet(
    engine.groups.flatMap(({ devices, serves, precision, loads, proofRuns, launch }) =>
      devices.map(({ id, name, provider }) => {
        const placement = placeExecutors(provider.name, usableCores(), settings);
        parts.log.info({ device: id, serves, precision, ...placement }, 'placing models on a device');
        const device = { deviceId: id, deviceName: name, provider, serves, precision, ...placement };
        const batchLimits = batchLimitsOf(provider.name, settings);
        const { threads } = placement;
        const facts = { models: loads, deviceId: id, deviceName: name, provider: provider.name, threads };
        const work = { launch, models: loads, proofRuns, batchLimits, ...createDeviceCosts(store, facts) };
        const modelIds = new Set(loads.map(({ modelId }) => modelId));
        return { device: createDeviceManager({ ...shared, ...device, ...work }), modelIds };
      }),
    ),
  );
}
