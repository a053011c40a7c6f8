/** Owns the finding of devices: what is listed, what is tried and what is taken, for each of several wishes. */
import type { ProviderName } from '../../executor/protocol.ts';
import { autoOrder, chooseDevices, softwareReason } from '../choice.ts';
import type { Refusal, UsableDevice } from '../choice.ts';
import { usableCores } from '../cpu.ts';
import { isAuto, parseWanted } from '../wanted.ts';
import type { Absence, DeviceCandidate, GpuCandidate, Inventory, ProbeResult } from './candidate.ts';
import { cpuResult } from './cpu.ts';
import { listCuda } from './list-cuda.ts';
import { listWebgpu } from './list-webgpu.ts';
import { driverEnvironment } from './machine.ts';
import type { Machine } from './machine.ts';
import { probeDevice } from './probe-device.ts';

/** All of them one after the other, with the listing, stay below 20 s. CUDA maps hundreds of megabytes. @unit ms */
const probeTimeoutsMs: Readonly<Record<GpuCandidate['provider'], number>> = { cuda: 8000, webgpu: 8000 };
/** Where a provider was named there is no other to go to, so a slow machine is given longer. @unit ms */
const namedTimeoutMs = 20_000;

/** What devices are found with. */
export interface FindOptions {
  readonly machine: Machine;
  /** Compiled entry file of the probe process. */
  readonly probeEntry: string;
  /** What a process on that device needs of the environment besides what drivers read: where its libraries are. */
  readonly environmentFor?: (candidate: DeviceCandidate) => Readonly<Record<string, string>>;
  /** Providers that were tried with the models and failed: as good as not there. */
  readonly excluded?: readonly Absence[];
}

/** A device to be used, with the environment that its executors need: the one it was tried in. */
export interface FoundDevice extends UsableDevice {
  readonly environment: Readonly<Record<string, string>>;
}

/** What was found for each wish. */
export interface FoundDevices<Wish extends string> {
  /** Devices by wish; none where the wish is among the problems. */
  readonly devices: Readonly<Record<Wish, readonly FoundDevice[]>>;
  /** What was considered for any wish and not taken, each once. */
  readonly refused: readonly Refusal[];
  /** Wishes that cannot be had. */
  readonly problems: readonly { readonly wish: Wish; readonly problem: string }[];
  /** @unit ms */
  readonly durationMs: number;
}

/**
 * The devices for each wish, such as `{ device: ['auto'], rerankDevice: ['cuda:1'] }`.
 * Tries only what a wish may end at: nothing for the CPU, and for `auto` no provider behind the first that will do.
 */
export async function findDevices<Wish extends string>(
  wishes: Readonly<Record<Wish, readonly string[]>>,
  options: FindOptions,
): Promise<FoundDevices<Wish>> {
  const startMs = performance.now();
  const entries = Object.entries(wishes) as [Wish, readonly string[]][];
  const inventory = await inventoryFor(
    entries.map(([, wanted]) => wanted),
    options,
  );
  const devices = {} as Record<Wish, readonly FoundDevice[]>;
  const refused = new Map<string, Refusal>();
  const problems: { wish: Wish; problem: string }[] = [];
  for (const [wish, wanted] of entries) {
    const choice = chooseDevices(wanted, inventory);
    devices[wish] = 'problem' in choice ? [] : choice.devices.map((device) => withEnvironment(device, options));
    if ('problem' in choice) problems.push({ wish, problem: choice.problem });
    else for (const refusal of choice.refused) refused.set(refusal.id, refusal);
  }
  return { devices, refused: [...refused.values()], problems, durationMs: performance.now() - startMs };
}

/** Everything that the machine has, each GPU tried in a process of its own. */
export async function takeInventory(options: FindOptions): Promise<Inventory> {
  const parts: Inventory[] = [];
  // One provider after the other: two that share a GPU would spoil each other's times.
  for (const provider of autoOrder) parts.push(await inspect(provider, options, 'all'));
  return join(parts);
}

async function inventoryFor(wishes: readonly (readonly string[])[], options: FindOptions): Promise<Inventory> {
  const parsed = wishes.map(parseWanted);
  const isAutoWanted = wishes.some(isAuto);
  const isNamed = (provider: ProviderName): boolean =>
    parsed.some((wish) => 'kind' in wish && wish.kind === 'named' && wish.provider === provider);
  let inventory: Inventory = { results: [], absences: [] };
  let isAutoServed = !isAutoWanted;
  for (const provider of autoOrder) {
    if (isAutoServed && !isNamed(provider)) continue;
    inventory = join([inventory, await inspect(provider, options, isNamed(provider) ? 'named' : 'auto')]);
    if (!('problem' in chooseDevices(['auto'], inventory))) isAutoServed = true;
  }
  return inventory;
}

const join = (parts: readonly Inventory[]): Inventory => ({
  results: parts.flatMap(({ results }) => results),
  absences: parts.flatMap(({ absences }) => absences),
});

/** Why a provider is looked at: by `auto`, by its name, or to list everything. */
type Purpose = 'auto' | 'named' | 'all';

/** What there is of one provider; its GPUs are tried side by side, what is known to be software not for `auto`. */
async function inspect(provider: ProviderName, options: FindOptions, purpose: Purpose): Promise<Inventory> {
  if (provider === 'cpu') return { results: [cpuResult(options.machine)], absences: [] };
  const excluded = options.excluded?.find((absence) => absence.provider === provider);
  if (excluded !== undefined) return { results: [], absences: [excluded] };
  const list = provider === 'cuda' ? await listCuda(options.machine) : listWebgpu(options.machine);
  if ('absence' in list) return { results: [], absences: [list.absence] };
  const results = await Promise.all(
    list.candidates.map(async (candidate) => {
      const isSoftware = candidate.provider === 'webgpu' && candidate.details.isSoftware === true;
      if (isSoftware && purpose === 'auto') return untried(candidate);
      const timeoutMs = purpose === 'named' ? namedTimeoutMs : probeTimeoutsMs[candidate.provider];
      return tryDevice(candidate, options, timeoutMs);
    }),
  );
  return { results, absences: [] };
}

const untried = (candidate: GpuCandidate): ProbeResult => ({
  candidate,
  verdict: { isUsable: false, reason: softwareReason(candidate) },
});

function tryDevice(candidate: GpuCandidate, options: FindOptions, timeoutMs: number): Promise<ProbeResult> {
  return probeDevice(candidate, {
    entryPath: options.probeEntry,
    threads: usableCores(),
    environment: environmentOf(candidate, options),
    timeoutMs,
  });
}

function environmentOf(candidate: DeviceCandidate, { machine, environmentFor }: FindOptions): Record<string, string> {
  return { ...driverEnvironment(machine), ...environmentFor?.(candidate) };
}

/** An executor on the CPU needs nothing of the environment. */
function withEnvironment(device: UsableDevice, options: FindOptions): FoundDevice {
  const isCpu = device.candidate.provider === 'cpu';
  return { ...device, environment: isCpu ? {} : environmentOf(device.candidate, options) };
}
