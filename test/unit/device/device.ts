/** Owns a device over scripted executors and a hand-driven clock, for the tests of this folder. */
import { defaultDeviceLimits } from '../../../src/device/limits.ts';
import { createDeviceManager } from '../../../src/device/manager.ts';
import type { DeviceManagerOptions } from '../../../src/device/manager.ts';
import { RunFailure } from '../../../src/device/pool.ts';
import type { RunResult, TakenExecutor, TakeWish } from '../../../src/device/pool.ts';
import type { ProofRun } from '../../../src/device/proof.ts';
import type { ModelLoad, RunBatch, RunRow } from '../../../src/executor/protocol.ts';
import { createFakeExecutors, fakeRows } from '../../support/fake-channel.ts';
import type { FakeRunReply, FakeScript } from '../../support/fake-channel.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { plainLoad } from '../../support/model-facts.ts';

export const limits = {
  ...defaultDeviceLimits,
  loadTimeoutMs: 10_000,
  runTimeoutMs: 1_000,
  stopTimeoutMs: 500,
  reproveIdleMs: 30_000,
  restartBaseMs: 100,
  restartMaxMs: 800,
  stableAfterMs: 60_000,
};
export const model: ModelLoad = {
  ...plainLoad,
  modelId: 'm',
  graphPath: '/m.onnx',
  heads: ['dense'],
  vocabularySize: 100,
  maxTokens: 16,
  precision: 'int8',
  maxSimGraphPath: null,
};
export const batchOf = (...ids: number[]): RunBatch => ({
  modelId: 'm',
  head: 'dense',
  items: ids.map((id) => ({ ids: Int32Array.of(id), typeIds: null, keptRows: null })),
  queryRows: null,
});
export const proofBatch = batchOf(99);
const proof: ProofRun = {
  batch: proofBatch,
  judge: (rows) => (rows[0]?.values[0] === 99 ? null : 'model m is too far from its reference'),
};
export const isProof = (batch: RunBatch) => batch === proofBatch;

export const batchLimits = { maxBatchTokens: 256, maxBatchItems: 16 };

export function createDevice(script: FakeScript = {}, executors = 1, options: Partial<DeviceManagerOptions> = {}) {
  const clock = createFakeClock();
  const fake = createFakeExecutors(script);
  const moves: string[] = [];
  const deaths: { reason: string; restartInMs: number | null }[] = [];
  const proved: string[] = [];
  const manager = createDeviceManager({
    deviceId: 'cpu:0',
    deviceName: 'A CPU',
    precision: 'int8',
    serves: ['embed'],
    executors,
    threads: 1,
    provider: { name: 'cpu', deviceIndex: 0 },
    batchLimits,
    costOf: () => null,
    timedHeads: () => [],
    onTimings: () => undefined,
    residentBytesOf: () => null,
    launch: fake.launch,
    models: [model],
    proofRuns: [proof],
    clock,
    random: () => 1,
    limits,
    observer: {
      onMoved: (id, from, to) => moves.push(`${id} ${from} ${to}`),
      onProved: (id) => proved.push(id),
      onDied: (_id, reason, restartInMs) => deaths.push({ reason, restartInMs }),
    },
    ...options,
  });
  return { clock, fake, manager, moves, deaths, proved };
}

export type Device = ReturnType<typeof createDevice>;

export async function start(device: Device): Promise<readonly string[]> {
  const started = device.manager.start();
  await device.clock.advance(0);
  return (await started).failures.map(({ executorId, reason }) => `${executorId}: ${reason}`);
}

/** Of an executor that is idle; of one that is busy; the same for what comes before others. */
export const plainWish: TakeWish = { isUrgent: false, mayQueue: false };
export const queued: TakeWish = { isUrgent: false, mayQueue: true };
export const urgent: TakeWish = { isUrgent: true, mayQueue: false };
export const urgentQueued: TakeWish = { isUrgent: true, mayQueue: true };

export function take(device: Device, wish = plainWish): TakenExecutor {
  const offer = device.manager.offer(wish);
  if (offer === null) throw new Error('no executor has room');
  return offer.take();
}

/** A batch on an executor that is idle. */
export const run = (device: Device, batch: RunBatch): Promise<RunResult> => take(device).run(batch, 1).result;

/** Executors that prove themselves at once, and whose other runs last until the test ends them. */
function createHeldRuns() {
  const begun: { readonly batch: RunBatch; readonly end: (reply: FakeRunReply) => void }[] = [];
  const run = (batch: RunBatch): FakeRunReply | Promise<FakeRunReply> =>
    isProof(batch) ? fakeRows(batch) : new Promise((end) => begun.push({ batch, end }));
  return {
    run,
    /** First id of each batch that has begun, in order. */
    begunIds: () => begun.map(({ batch }) => batch.items[0]?.ids[0]),
    /** Ends the run that began last; with its rows where no reply is given. */
    async end(device: Device, reply?: FakeRunReply) {
      const last = begun.at(-1);
      last?.end(reply ?? fakeRows(last.batch));
      await device.clock.advance(0);
    },
  };
}

/** A device that was started, and whose runs last until the test ends them. */
export async function createBusy(script: FakeScript = {}, executors = 1, options: Partial<DeviceManagerOptions> = {}) {
  const held = createHeldRuns();
  const device = createDevice({ ...script, run: held.run }, executors, options);
  await start(device);
  return { device, held };
}

/** Gives a batch of the text `id` to an executor that has room for it. */
export function give(device: Device, id: number, wish: TakeWish, expectedMs = 1) {
  const given = take(device, wish).run(batchOf(id), expectedMs);
  let kind: string | null = null;
  const outcome = settle(given.result).then((settled) => {
    kind = kindOf(settled);
    return settled;
  });
  return { skip: given.skip, outcome, kind: () => kind };
}

/** What an executor says of a run that went well. */
export const resultMessage = (runId: number, rows: readonly (RunRow | null)[], nextRunId: number | null = null) => ({
  type: 'result',
  runId,
  rows,
  computeMs: 1,
  paddedTokens: 1,
  residentBytes: 1,
  nextRunId,
});

/** The run's outcome as a value, so that a failure before the clock moved is not unhandled. */
export function settle(run: Promise<RunResult>): Promise<RunResult | RunFailure> {
  return run.catch((error: unknown) => {
    if (error instanceof RunFailure) return error;
    throw error;
  });
}

export const kindOf = (outcome: RunResult | RunFailure) => (outcome instanceof RunFailure ? outcome.kind : 'result');
