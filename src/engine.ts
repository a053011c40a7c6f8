/** Owns opening the models: settings to devices, to tasks, to everything a server needs to start executors. */
import { systemClock } from './clock.ts';
import { environment } from './config/environment.ts';
import { readHubSettings } from './config/hub.ts';
import type { Settings } from './config/settings.ts';
import { cudaLibraryEnvironment } from './cuda/library-environment.ts';
import { usableCores } from './device/cpu.ts';
import type { LaunchExecutor } from './device/channel.ts';
import type { Refusal } from './device/choice.ts';
import { cpuResult } from './device/inventory/cpu.ts';
import { findDevices, type FindOptions, type FoundDevice } from './device/inventory/find.ts';
import { createGpuMemoryReader, type KnownGpu, type ReadGpuMemory } from './device/inventory/gpu-memory.ts';
import { thisMachine } from './device/inventory/machine.ts';
import { defaultDeviceLimits } from './device/limits.ts';
import type { ProofRun } from './device/proof.ts';
import { isAuto } from './device/wanted.ts';
import type { OpenedGroup, OpeningParts } from './engine/group.ts';
import { groupUses, type DeviceGroup } from './engine/groups.ts';
import { serveTasks } from './engine/tasks.ts';
import { tryGroup } from './engine/try-group.ts';
import { refuseWishes, usesOf, wishesOf, type Wishes } from './engine/wishes.ts';
import { ConfigurationError } from './errors.ts';
import type { ModelLoad, ProviderChoice, ProviderName } from './executor/protocol.ts';
import { modelsDirOf } from './model/bundled.ts';
import { describeConversion } from './model/conversion-text.ts';
import { precisionLabel } from './model/convert/steps.ts';
import type { DeviceAbilities } from './model/graph-variant.ts';
import { loadIdOf, type ModelManifest } from './model/manifest.ts';
import type { LocateModel } from './model/registry.ts';
import type { ServedTasks } from './task/context.ts';

/** One device, and how its executors are told to use it. */
export interface EngineDevice {
  /** Such as `cuda:0`. */
  readonly id: string;
  readonly name: string;
  readonly provider: ProviderChoice;
}

/** Models, and the devices that all run all of them. */
export interface EngineGroup {
  readonly devices: readonly EngineDevice[];
  /** Capabilities that these models are for. */
  readonly serves: readonly string[];
  readonly loads: readonly ModelLoad[];
  readonly proofRuns: readonly ProofRun[];
  readonly launch: LaunchExecutor;
  /** Label of the weights in use, for the device report. */
  readonly precision: string;
}

/** What runs the models; tests bring one of their own. */
export interface Engine {
  readonly tasks: ServedTasks;
  readonly groups: readonly EngineGroup[];
  /** Devices that were considered and not taken. */
  readonly refused: readonly Refusal[];
  /** Memory of the GPUs in use, for the metrics; absent: nobody can tell. */
  readonly readGpuMemory?: ReadGpuMemory;
}

/** What is told while models are opened. */
export type EngineLog = OpeningParts['log'];

/** Compiled entries of the processes that run models, and that try devices. */
export interface ProcessEntries {
  readonly executor: string;
  readonly probe: string;
}

/**
 * Opens every configured model for the devices that will run it. On the CPU nothing runs yet; a GPU is taken only after
 * the models have proved themselves on it.
 * @throws ConfigurationError that names every problem
 */
export async function openEngine(settings: Settings, entries: ProcessEntries, log: EngineLog): Promise<Engine> {
  const wishes = wishesOf(settings);
  const options = findOptionsOf(settings, entries);
  const given: { provider: ProviderName; reason: string }[] = [];
  for (;;) {
    const found = await findDevices(wishes, { ...options, excluded: given });
    refuseWishes(found.problems);
    const opened = await openGroups(groupUses(usesOf(settings), found.devices), wishes, { settings, entries, log });
    if (!('excluded' in opened)) {
      for (const refusal of found.refused) log.info(refusal, 'a device is not used');
      for (const { models } of opened.groups)
        for (const model of models.all) log.info(factsOf(model), 'serving a model');
      const gpus = gpusOf(opened.groups);
      return {
        tasks: await serveTasks(opened.groups),
        groups: opened.groups.map(engineGroup),
        refused: found.refused,
        readGpuMemory: createGpuMemoryReader({ gpus, machine: thisMachine(environment), clock: systemClock }),
      };
    }
    // At most once for each provider: what is excluded is not found again.
    given.push(opened.excluded);
  }
}

interface EngineParts {
  readonly settings: Settings;
  readonly entries: ProcessEntries;
  readonly log: EngineLog;
}

/** Every group on its devices, or the provider that `auto` has to do without. */
async function openGroups(
  groups: readonly DeviceGroup[],
  wishes: Wishes,
  { settings, entries, log }: EngineParts,
): Promise<{ groups: OpenedGroup[] } | { excluded: { provider: ProviderName; reason: string } }> {
  const { runTimeoutMs, loadTimeoutMs } = settings;
  const opened: OpenedGroup[] = [];
  for (const group of groups) {
    const isFree = group.uses.every((use) => isAuto(wishes[use]));
    const trial = await tryGroup(group, {
      settings: { ...settings, modelsDir: modelsDirOf(settings) },
      executorEntry: entries.executor,
      locateFor: (abilities) => locateWith(settings, abilities, log),
      log,
      takenIds: new Set(opened.flatMap(({ models }) => models.all.map(loadIdOf))),
      clock: systemClock,
      limits: { ...defaultDeviceLimits, runTimeoutMs, loadTimeoutMs },
      cpu: isFree ? cpuDevice() : null,
      cores: usableCores(),
    });
    if (trial.isTaken) {
      opened.push(trial.opened);
      continue;
    }
    const [first] = group.devices;
    const provider = first?.candidate.provider ?? 'cpu';
    if (!isFree) throw new ConfigurationError([`device: ${provider} cannot be used: ${trial.reason}`]);
    log.warn(`${provider} is not used: ${trial.reason}`);
    return { excluded: { provider, reason: trial.reason } };
  }
  return { groups: opened };
}

function findOptionsOf({ cacheDir }: Settings, { probe }: ProcessEntries): FindOptions {
  const cuda = cudaLibraryEnvironment(cacheDir, environment['LD_LIBRARY_PATH'])?.env;
  return {
    machine: thisMachine(environment),
    probeEntry: probe,
    environmentFor: ({ provider }) => (provider === 'cuda' ? { ...cuda } : {}),
  };
}

/** The CPU as a device, to compare others with. */
function cpuDevice(): FoundDevice | null {
  const { candidate, verdict } = cpuResult(thisMachine(environment));
  return verdict.isUsable ? { candidate, verdict, environment: {} } : null;
}

const engineDevice = ({ candidate: { id, name, provider, index } }: FoundDevice): EngineDevice => ({
  id,
  name,
  provider: { name: provider, deviceIndex: index },
});

/** The NVIDIA GPUs of all groups, each once. */
function gpusOf(groups: readonly OpenedGroup[]): KnownGpu[] {
  const known = groups.flatMap(({ devices }) =>
    devices.flatMap(({ candidate }) => {
      const uuid = candidate.provider === 'cuda' ? candidate.details.uuid : null;
      return uuid === null ? [] : [{ deviceId: candidate.id, uuid }];
    }),
  );
  return known.filter(({ uuid }, index) => known.findIndex((gpu) => gpu.uuid === uuid) === index);
}

function engineGroup({ devices, uses, loads, proofRuns, launch, precision }: OpenedGroup): EngineGroup {
  // Multi-vector models rank as well.
  const serves = new Set<string>(uses.includes('multiVector') ? [...uses, 'rerank'] : uses);
  return { devices: devices.map(engineDevice), serves: [...serves], loads, proofRuns, launch, precision };
}

/** What the log says of a model. */
function factsOf(model: ModelManifest): object {
  const steps = model.conversion ?? [];
  return {
    model: model.modelId,
    precision: precisionLabel(model.precision, steps),
    graph: model.graphPath,
    converted: describeConversion(steps),
    heads: model.heads,
  };
}

/** Finds models on the hub. Loaded with the first such name: most starts need no downloader and none of its settings. */
function locateWith({ offline, precision }: Settings, device: DeviceAbilities, log: EngineLog): LocateModel {
  let locator: Promise<LocateModel> | null = null;
  return async (setting) => {
    locator ??= import('./model/hub/locate.ts').then(({ createLocator, openHub }) => {
      const { cacheDir, ...connection } = readHubSettings(environment);
      const report = (line: string): void => {
        log.info({}, line);
      };
      const hub = openHub({ connection, cacheDir, report });
      return createLocator({ hub, isOffline: offline, wanted: precision, device });
    });
    return (await locator)(setting);
  };
}
