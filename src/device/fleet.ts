/** Owns all devices as one pool: which of them serves a model, and which of those runs it soonest. */
import type { DeviceManager, StartFailure } from './manager.ts';
import type { DevicePool } from './pool.ts';

/** A device, and the models that its executors have. */
export interface FleetMember {
  readonly device: DeviceManager;
  readonly modelIds: ReadonlySet<string>;
}

/** Every device of the process. */
export interface DeviceFleet extends DevicePool {
  /** Starts every executor of every device; resolves when each has proved itself or is given up. */
  start(): Promise<{ readonly failures: readonly StartFailure[] }>;
  stop(): Promise<void>;
  /** Models that no executor will ever run. */
  lostModels(): readonly string[];
}

/** A pool of devices, none of them started. */
export function createDeviceFleet(members: readonly FleetMember[]): DeviceFleet {
  const devices = members.map(({ device }) => device);
  const devicesOf = (modelId?: string): DeviceManager[] =>
    members.filter(({ modelIds }) => modelId === undefined || modelIds.has(modelId)).map(({ device }) => device);
  const modelIds = new Set(members.flatMap((member) => [...member.modelIds]));
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
  const ownerOf = (executorId: string) => devices.find(({ deviceId }) => executorId.startsWith(`${deviceId}/`));
  return {
    take: (modelId) =>
      fastestFirst(devicesOf(modelId))
        .find((device) => device.idleCount() > 0)
        ?.take() ?? null,
    activeCount: (modelId) => sum(devicesOf(modelId).map((device) => device.activeCount())),
    idleCount: (modelId) => sum(devicesOf(modelId).map((device) => device.idleCount())),
    canServeLater: (modelId) => devicesOf(modelId).some((device) => device.canServeLater()),
    onChange(listener) {
      for (const device of devices) device.onChange(listener);
    },
    reportBadResult: (executorId) => ownerOf(executorId)?.reportBadResult(executorId),
    reportGoodResult: (executorId) => ownerOf(executorId)?.reportGoodResult(executorId),
    readiness() {
      const unserved = [...modelIds].filter(
        (modelId) => !devicesOf(modelId).some((device) => device.readiness().isReady),
      );
      const down = new Set(unserved.flatMap((modelId) => devicesOf(modelId)));
      return { isReady: unserved.length === 0, reasons: [...down].flatMap((device) => device.readiness().reasons) };
    },
    lostModels: () => [...modelIds].filter((modelId) => !devicesOf(modelId).some((device) => device.canServeLater())),
    reports: () => devices.map((device) => device.report()),
    async start() {
      const started = await Promise.all(devices.map((device) => device.start()));
      return { failures: started.flatMap(({ failures }) => failures) };
    },
    async stop() {
      await Promise.all(devices.map((device) => device.stop()));
    },
  };
}

/** Idle devices start at once, so the fastest of them ends first; one that never ran may be, and is tried. */
function fastestFirst(devices: readonly DeviceManager[]): DeviceManager[] {
  const speedOf = (device: DeviceManager) => device.tokensPerMs() ?? Infinity;
  return [...devices].sort((one, other) => {
    const [left, right] = [speedOf(one), speedOf(other)];
    return left === right ? 0 : right - left;
  });
}
