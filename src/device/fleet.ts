/** Owns all devices as one pool: which of them serves a model, and which of those runs it soonest. */
import type { DeviceManager, Offer, StartFailure } from './manager.ts';
import type { DevicePool, ExecutorReport, TakeWish } from './pool.ts';

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
  executorReports(): readonly ExecutorReport[];
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
    take: (modelId, wish) => soonest(devicesOf(modelId), modelId, wish)?.take() ?? null,
    hasRoom: (modelId, wish) => soonest(devicesOf(modelId), modelId, wish) !== null,
    isAlone: (modelId) => devicesOf(modelId).every((device) => device.shapeOf(modelId, null).isAlone),
    textMs: (modelId, head, tokens) =>
      Math.min(...devicesOf(modelId).map((device) => device.shapeOf(modelId, head).textMs(tokens))),
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
    executorReports: () => devices.flatMap((device) => device.executorReports()),
    async start() {
      const started = await Promise.all(devices.map((device) => device.start()));
      return { failures: started.flatMap(({ failures }) => failures) };
    },
    async stop() {
      await Promise.all(devices.map((device) => device.stop()));
    },
  };
}

/** Length of the text by which devices are compared. @unit tokens */
const comparedTokens = 128;

/**
 * What the device that would finish soonest offers: a fast one that is busy may be done before a slow one that is idle.
 * Null where one without room would finish before those that are busy and have some: the work waits for that one.
 */
function soonest(devices: readonly DeviceManager[], modelId: string, wish: TakeWish): Offer | null {
  const [only] = devices;
  if (devices.length === 1) return only?.offer(wish) ?? null;
  let best: { offer: Offer; endMs: number } | null = null;
  let fullEndMs = Infinity;
  for (const device of devices) {
    const offer = device.offer(wish);
    const waitMs = offer?.waitMs ?? device.waitMs(wish.isUrgent);
    const endMs = waitMs + device.shapeOf(modelId, null).textMs(comparedTokens);
    if (offer === null) fullEndMs = Math.min(fullEndMs, endMs);
    else if (best === null || endMs < best.endMs) best = { offer, endMs };
  }
  if (best === null || (best.offer.waitMs > 0 && fullEndMs < best.endMs)) return null;
  return best.offer;
}
