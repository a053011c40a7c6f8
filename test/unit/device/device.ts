/** Owns a device over scripted executors and a hand-driven clock, for the tests of this folder. */
import { defaultDeviceLimits } from '../../../src/device/limits.ts';
import { createDeviceManager } from '../../../src/device/manager.ts';
import type { DeviceManagerOptions } from '../../../src/device/manager.ts';
import { RunFailure } from '../../../src/device/pool.ts';
import type { RunResult, TakenExecutor } from '../../../src/device/pool.ts';
import type { ProofRun } from '../../../src/device/proof.ts';
import type { ModelLoad, RunBatch } from '../../../src/executor/protocol.ts';
import { createFakeExecutors } from '../../support/fake-channel.ts';
import type { FakeScript } from '../../support/fake-channel.ts';
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
const model: ModelLoad = {
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

type Device = ReturnType<typeof createDevice>;

export async function start(device: Device): Promise<readonly string[]> {
  const started = device.manager.start();
  await device.clock.advance(0);
  return (await started).failures.map(({ executorId, reason }) => `${executorId}: ${reason}`);
}

export function take(device: Device): TakenExecutor {
  const executor = device.manager.take();
  if (executor === null) throw new Error('no executor is ready');
  return executor;
}

/** The run's outcome as a value, so that a failure before the clock moved is not unhandled. */
export function settle(run: Promise<RunResult>): Promise<RunResult | RunFailure> {
  return run.catch((error: unknown) => {
    if (error instanceof RunFailure) return error;
    throw error;
  });
}

export const kindOf = (outcome: RunResult | RunFailure) => (outcome instanceof RunFailure ? outcome.kind : 'result');
