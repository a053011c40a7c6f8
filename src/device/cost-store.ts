/** Owns the fitted costs that outlast a process: one small file for each, in the cache folder, never relied upon. */
import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Head, ModelLoad, ProviderName } from '../executor/protocol.ts';
import type { RunCost } from './cost-model.ts';

/** Everything that a cost depends on, beside the versions of the program and of its engine. */
export interface CostKey extends Pick<ModelLoad, 'modelId' | 'graphPath' | 'precision'> {
  readonly head: Head;
  /** Such as `cuda:0`. */
  readonly deviceId: string;
  readonly deviceName: string;
  readonly provider: ProviderName;
  readonly threads: number;
}

/** Costs that are known. */
export interface CostStore {
  /** The cost that was put last, also by an earlier process; null where there is none that can be read. */
  get(key: CostKey): RunCost | null;
  /** Keeps a cost; in memory only where the folder cannot be written. */
  put(key: CostKey, cost: RunCost): void;
}

/** What a store needs besides its folder. */
export interface CostStoreOptions {
  /** Of the program and of its engine: costs of others are not read. */
  readonly version: string;
  /** Called once, where the folder cannot be written, with the reason. */
  readonly onUnwritable: (reason: string) => void;
}

/** Files that may lie in the folder when it is opened; a machine has as many as it has heads of models and devices. */
const maxFiles = 256;

/** What a file of a store is called, complete or not: the hash of its version, then that of its key. */
const fileName = /^([0-9a-f]{12})-[0-9a-f]{32}\.json(\.[0-9a-f-]+\.tmp)?$/u;

const hashOf = (text: string, digits: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, digits);

/** The key as a text that is the same for equal keys, whatever the order of their members. */
const textOf = ({ modelId, graphPath, precision, head, deviceId, deviceName, provider, threads }: CostKey): string =>
  JSON.stringify([modelId, graphPath, precision, head, deviceId, deviceName, provider, threads]);

/** Opens the store in a folder, which is made where it is not there once something is put. */
export function openCostStore(folder: string, { version, onUnwritable }: CostStoreOptions): CostStore {
  const versionHash = hashOf(version, 12);
  const known = new Map<string, RunCost | null>();
  let isWritable = true;
  removeSurplus(folder, versionHash);

  const pathOf = (key: string) => join(folder, `${versionHash}-${hashOf(key, 32)}.json`);

  function write(key: string, cost: RunCost): void {
    const path = pathOf(key);
    const temporaryPath = `${path}.${randomUUID()}.tmp`;
    try {
      mkdirSync(folder, { recursive: true });
      writeFileSync(temporaryPath, `${JSON.stringify({ version, key, cost })}\n`, { flag: 'wx' });
      renameSync(temporaryPath, path);
    } catch (error) {
      isWritable = false;
      removeQuietly(temporaryPath);
      onUnwritable(`${folder} cannot be written: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  return {
    get(costKey) {
      const key = textOf(costKey);
      let cost = known.get(key);
      if (cost === undefined) known.set(key, (cost = readCost(pathOf(key), version, key)));
      return cost;
    },
    put(costKey, cost) {
      const key = textOf(costKey);
      known.set(key, cost);
      if (isWritable) write(key, cost);
    },
  };
}

/** The cost in a file; null where there is none, or where it is not what the store writes for that key. */
function readCost(path: string, version: string, key: string): RunCost | null {
  try {
    const content = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown> | null;
    if (content === null || content['version'] !== version || content['key'] !== key) return null;
    return costOf(content['cost']);
  } catch {
    return null;
  }
}

function costOf(value: unknown): RunCost | null {
  if (typeof value !== 'object' || value === null) return null;
  const { fixedMs, tokenMs, squaredTokenMs } = value as Record<string, unknown>;
  if (!isCoefficient(fixedMs) || !isCoefficient(tokenMs) || !isCoefficient(squaredTokenMs)) return null;
  return { fixedMs, tokenMs, squaredTokenMs };
}

const isCoefficient = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value < Infinity;

/** Where there are too many files, those of other versions go, then the oldest; what is not the store's stays. */
function removeSurplus(folder: string, versionHash: string): void {
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => fileName.test(name));
  } catch {
    return;
  }
  if (names.length <= maxFiles) return;
  const isOwn = (name: string) => fileName.exec(name)?.[1] === versionHash && !name.endsWith('.tmp');
  const own = names.filter(isOwn).map((name) => ({ name, writtenMs: writtenMsOf(join(folder, name)) }));
  own.sort((left, right) => right.writtenMs - left.writtenMs);
  const kept = new Set(own.slice(0, maxFiles).map(({ name }) => name));
  for (const name of names) if (!kept.has(name)) removeQuietly(join(folder, name));
}

function writtenMsOf(path: string): number {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    return;
  }
}
