/** Owns devices over real executor processes, for tests of what only a process can show. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../src/clock.ts';
import { forkExecutor } from '../../../src/device/channel.ts';
import type { LaunchExecutor } from '../../../src/device/channel.ts';
import { defaultDeviceLimits } from '../../../src/device/limits.ts';
import { createDeviceManager } from '../../../src/device/manager.ts';
import type { DeviceManager } from '../../../src/device/manager.ts';
import { residentBytesOf } from '../../../src/device/memory.ts';
import type { RunResult } from '../../../src/device/pool.ts';
import { everyHead } from '../../../src/device/warm-up.ts';
import type { Head, ModelLoad, RunBatch, RunItem, RunRow } from '../../../src/executor/protocol.ts';
import type { ModelManifest } from '../../../src/model/manifest.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { plainSplade } from '../../../src/model/sparse-rules.ts';
import { meanSteps, plainFacts } from '../../support/model-facts.ts';

export const root = fileURLToPath(new URL('../../..', import.meta.url));
export const entryPath = join(root, 'dist/executor/main.js');
export const vocabularySize = 30_522;
export const dimension = 384;
/** Far above what loading and ending a process take, far below a test run's patience. */
export const processTestTimeoutMs = 30_000;

export const cacheDir = mkdtempSync(join(tmpdir(), 'trivec-executor-'));
const managers: DeviceManager[] = [];
/** A started device and what became of its executors. */
export interface Device {
  readonly manager: DeviceManager;
  /** Of every executor that was launched, in order. */
  readonly pids: readonly number[];
  readonly exits: readonly string[];
}

const manifestOf = (modelId: string, facts: Partial<ModelManifest>): ModelManifest => {
  const folder = join(root, 'models', modelId);
  const graphPath = join(folder, 'onnx/model_int8.onnx');
  const sha256 = createHash('sha256').update(readFileSync(graphPath)).digest('hex');
  return {
    ...plainFacts(dimension),
    modelId,
    folder,
    graphPath,
    precision: 'int8',
    revision: sha256.slice(0, 12),
    sha256,
    maxTokens: 256,
    hiddenSize: dimension,
    vocabularySize,
    pooling: null,
    isNormalized: true,
    isMatryoshka: false,
    prompts: { query: '', document: '', unspecified: '' },
    scoreActivation: 'identity',
    heads: [],
    selfChecks: [],
    ...facts,
  };
};

interface StartOptions {
  readonly executors?: number;
  readonly runTimeoutMs?: number;
  /** Models other than the embedded ones. */
  readonly loads?: readonly ModelLoad[];
}

/** A device over real executors that has been started; `endDevices` stops it. */
export async function startDevice(
  options: StartOptions = {},
): Promise<Device & { readonly failures: readonly string[] }> {
  const pids: number[] = [];
  const exits: string[] = [];
  const fork = forkExecutor(entryPath, { LANG: 'C' });
  const launch: LaunchExecutor = (executorId) => {
    const channel = fork(executorId);
    pids.push(channel.pid ?? 0);
    channel.onExit((reason) => exits.push(reason));
    return channel;
  };
  const models = options.loads ?? (await embeddedLoads());
  const manager = createDeviceManager({
    deviceId: 'cpu:0',
    deviceName: 'A CPU',
    precision: 'int8',
    serves: ['embed'],
    executors: options.executors ?? 1,
    threads: 1,
    provider: { name: 'cpu', deviceIndex: 0 },
    batchLimits: { maxBatchTokens: 256, maxBatchItems: 16 },
    residentBytesOf,
    costOf: () => null,
    timedHeads: () => everyHead(models),
    onTimings: () => undefined,
    launch,
    models,
    proofRuns: [],
    clock: systemClock,
    random: Math.random,
    limits: { ...defaultDeviceLimits, runTimeoutMs: options.runTimeoutMs ?? 20_000, restartBaseMs: 50 },
    observer: { onMoved: () => undefined, onProved: () => undefined, onDied: () => undefined },
  });
  managers.push(manager);
  const { failures } = await manager.start();
  return { manager, pids, exits, failures: failures.map(({ reason }) => reason) };
}

export const textOf = (tokens: number, seed: number, extra: Partial<RunItem> = {}): RunItem => ({
  ids: Int32Array.from({ length: tokens }, (_, position) => (seed * 7_919 + position * 104_729) % vocabularySize),
  typeIds: null,
  keptRows: null,
  ...extra,
});
export const batchOf = (head: Head, items: readonly RunItem[]): RunBatch => ({
  modelId: head === 'sparse' ? 'splade-tiny' : 'all-MiniLM-L6-v2',
  head,
  items,
  queryRows: null,
});

export function run({ manager }: Device, batch: RunBatch): Promise<RunResult> {
  const offer = manager.offer({ isUrgent: false, mayQueue: false });
  if (offer === null) throw new Error('no executor is ready');
  return offer.take().run(batch, 1).result;
}

/** The rows of a run of which nothing was skipped. */
export const wholeRows = ({ rows }: Pick<RunResult, 'rows'>): RunRow[] =>
  rows.map((row) => {
    if (row === null) throw new Error('a row is missing');
    return row;
  });

export async function rowOf(from: Device, head: Head, item: RunItem): Promise<RunRow> {
  const [row] = wholeRows(await run(from, batchOf(head, [item])));
  if (row === undefined) throw new Error('no row');
  return row;
}

export const failureOf = (outcome: Promise<RunResult>): Promise<unknown> =>
  outcome.then(
    () => null,
    (error: unknown) => error,
  );

let loads: Promise<ModelLoad[]> | null = null;

/** The embedded default models, prepared once for each test file. */
export function embeddedLoads(): Promise<ModelLoad[]> {
  loads ??= prepareModels(
    [manifestOf('all-MiniLM-L6-v2', { vectorSteps: meanSteps, heads: ['dense', 'rows', 'maxSim'] }), embeddedSparse()],
    cacheDir,
  );
  return loads;
}

/** The embedded sparse model. */
export const embeddedSparse = (): ModelManifest =>
  manifestOf('splade-tiny', {
    hiddenSize: 128,
    maxTokens: 512,
    isNormalized: false,
    sparse: plainSplade,
    heads: ['sparse'],
  });

/** Stops every device that was started: for `afterEach`. */
export async function endDevices(): Promise<void> {
  await Promise.all(managers.splice(0).map((manager) => manager.stop()));
}

/** Removes the prepared graphs: for `afterAll`. */
export function removeCache(): void {
  rmSync(cacheDir, { recursive: true, force: true });
}
