/** Owns the devices of a service: from what was found to what manages executors on it. */
import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { engineVersion } from '../cuda/wheels.ts';
import { openCostStore } from '../device/cost-store.ts';
import { createDeviceCosts } from '../device/costs.ts';
import { usableCores } from '../device/cpu.ts';
import { createDeviceFleet, type DeviceFleet } from '../device/fleet.ts';
import { defaultDeviceLimits } from '../device/limits.ts';
import { createDeviceManager } from '../device/manager.ts';
import { residentBytesOf } from '../device/memory.ts';
import { batchLimitsOf, placeExecutors } from '../device/placement.ts';
import type { Engine } from '../engine.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createDeviceRecorder } from '../telemetry/record.ts';

/** What devices are made with. */
export interface DeviceParts {
  readonly version: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly isDraining: () => boolean;
}

/** Every device of the engine, with its executors placed; none has been started. */
export function createDevices(settings: Settings, engine: Engine, parts: DeviceParts): DeviceFleet {
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
