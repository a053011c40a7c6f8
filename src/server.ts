/** Owns the composition: the only file that constructs the parts of a running service and wires them. */
import { systemClock, type Clock } from './clock.ts';
import type { Settings } from './config/settings.ts';
import { usableCores } from './device/cpu.ts';
import { createDeviceFleet, type DeviceFleet } from './device/fleet.ts';
import { defaultDeviceLimits } from './device/limits.ts';
import { createDeviceManager } from './device/manager.ts';
import { residentBytesOf } from './device/memory.ts';
import { batchLimitsOf, placeExecutors } from './device/placement.ts';
import type { DeviceObserver } from './device/slot.ts';
import type { Engine } from './engine.ts';
import { isLoopbackHost } from './config/load.ts';
import { createHttpApp } from './http/app.ts';
import { createMemoryBudget } from './http/memory-budget.ts';
import { listen, type Listener } from './http/listen.ts';
import { createInfoBuilder, type ServerInfo } from './rpc/capabilities.ts';
import { createDispatcher, type CallRecord } from './rpc/dispatch.ts';
import { createFrameService } from './rpc/frames.ts';
import type { FrameService } from './rpc/service.ts';
import { createSessionStore, type SessionStore } from './rpc/session.ts';
import { serveStdio, type StdioServer } from './stdio/serve.ts';
import type { Readable, Writable } from 'node:stream';
import { createScheduler, type Scheduler } from './schedule/scheduler.ts';
import type { Log } from './telemetry/log.ts';
import { createMetrics, type Metrics } from './telemetry/metrics.ts';

/** What a service is made from. */
export interface ServiceParts {
  readonly settings: Settings;
  readonly engine: Engine;
  readonly log: Log;
  readonly server: ServerInfo;
  readonly clock?: Clock;
  readonly random?: () => number;
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
  const { settings, engine, log, server, clock = systemClock, random = Math.random } = parts;
  const metrics = createMetrics();
  let isDraining = false;
  const devices = createDevices(settings, engine, { clock, random, log, metrics, isDraining: () => isDraining });
  const scheduler = createScheduler({
    pool: devices,
    clock,
    limits: settings,
    observer: {
      onRun({ device, items, tokens, computeMs, queueMs }) {
        metrics.runs.inc({ device });
        metrics.runInputs.inc({ device }, items);
        metrics.runTokens.inc({ device }, tokens);
        metrics.runSeconds.inc({ device }, computeMs / 1000);
        metrics.queueWaitSeconds.observe(queueMs / 1000);
      },
      onLostRun(lost) {
        metrics.lostRuns.inc({ kind: lost.kind });
        log.warn(lost, 'a batch gave no result');
      },
      onBadResult({ executorId, modelId, head }) {
        metrics.nonFiniteResults.inc({ model: modelId, head });
        log.error({ executorId, modelId, head }, 'a result held a value that is not a number and was refused');
      },
    },
  });
  const info = createInfoBuilder(server, engine.tasks, settings, () => devices.reports(), engine.refused);
  const dispatcher = createDispatcher({
    tasks: engine.tasks,
    scheduler,
    info,
    clock,
    limits: { ...settings, maxAnswerBytes: settings.answerLimitBytes },
    isDraining: () => isDraining,
    onCall: (record) => {
      observeCall(record, metrics, log);
    },
  });
  metrics.watch({
    queuedInputs: () => scheduler.gauges.queuedItems,
    queuedTokens: () => scheduler.gauges.queuedTokens,
    queueSeconds: () => scheduler.predictedDrainMs() / 1000,
    runningInputs: () => scheduler.gauges.runningItems,
    executorsReady: () => devices.activeCount(),
    isReady: () => devices.readiness().isReady,
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

/**
 * Serves over HTTP; answers ping, info and health at once, whatever the state of the devices.
 * @throws ConfigurationError where the address cannot be bound
 */
export function openHttp(service: Service, { settings, log, clock = systemClock }: ServiceParts): Promise<Listener> {
  const { bodyLimitBytes: bodyBytes, bodyTimeoutMs, headersTimeoutMs, maxConnections } = settings;
  const { answerStallTimeoutMs: answerStallMs } = settings;
  const app = createHttpApp({
    service: service.frames,
    sessions: service.sessions,
    readiness: () => service.devices.readiness(),
    metricsText: () => service.metrics.registry.metrics(),
    limits: { bodyBytes, bodyTimeoutMs },
    memory: createMemoryBudget(settings.maxBufferedBytes),
    apiKey: settings.apiKey,
    corsOrigins: settings.corsOrigins,
    allowedHosts: settings.allowedHosts,
    isLoopbackBind: isLoopbackHost(settings.host),
    metricsOpen: settings.metricsOpen,
    isDraining: service.isDraining,
    log,
    onRefused: (reason) => service.metrics.refusedRequests.inc({ reason }),
    clock,
  });
  const limits = { maxConnections, headerBytes, headersTimeoutMs, bodyTimeoutMs, answerStallMs };
  const onStalled = () => {
    service.metrics.refusedRequests.inc({ reason: 'stalled' });
  };
  return listen({ app, host: settings.host, port: settings.port, clock, limits, onStalled });
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
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly isDraining: () => boolean;
}

function createDevices(settings: Settings, engine: Engine, parts: DeviceParts): DeviceFleet {
  const { clock, random } = parts;
  const { runTimeoutMs, loadTimeoutMs, reproveIdleMs, maxExecutorBytes } = settings;
  const limits = { ...defaultDeviceLimits, runTimeoutMs, loadTimeoutMs, reproveIdleMs, maxExecutorBytes };
  const shared = { clock, random, limits, residentBytesOf, observer: deviceObserver(parts) };
  return createDeviceFleet(
    engine.groups.flatMap(({ devices, serves, precision, loads, proofRuns, launch }) =>
      devices.map(({ id, name, provider }) => {
        const placement = placeExecutors(provider.name, usableCores(), settings);
        parts.log.info({ device: id, serves, precision, ...placement }, 'placing models on a device');
        const device = { deviceId: id, deviceName: name, provider, serves, precision, ...placement };
        const work = { launch, models: loads, proofRuns, batchLimits: batchLimitsOf(provider.name, settings) };
        const modelIds = new Set(loads.map(({ modelId }) => modelId));
        return { device: createDeviceManager({ ...shared, ...device, ...work }), modelIds };
      }),
    ),
  );
}

function deviceObserver({ log, metrics, isDraining }: DeviceParts): DeviceObserver {
  return {
    onMoved(executorId, from, to) {
      log.debug({ executorId, from, to }, 'executor state');
    },
    onProved(executorId, pid, loadMs, proofMs) {
      const times = { loadMs: Math.round(loadMs), proofMs: Math.round(proofMs) };
      log.info({ executorId, pid, ...times }, 'an executor has proved itself');
    },
    onDied(executorId, reason, restartInMs) {
      if (restartInMs !== null) metrics.executorRestarts.inc();
      log[isDraining() ? 'info' : 'warn']({ executorId, reason, restartInMs }, 'an executor is gone');
    },
  };
}

function observeCall(record: CallRecord, metrics: Metrics, log: Log): void {
  const { method, outcome, transport, latencyMs, bug } = record;
  metrics.calls.inc({ method, outcome, transport });
  metrics.callSeconds.observe({ method }, latencyMs / 1000);
  if (bug !== null) log.error({ err: bug, method }, 'a call failed because of a bug');
  else log.debug({ method, outcome, transport, latencyMs }, 'call');
}
