/** Owns the opening of the models of one group of devices: from settings to what its executors load and prove. */
import { forkExecutor, type LaunchExecutor } from '../device/channel.ts';
import type { FoundDevice } from '../device/inventory/find.ts';
import type { ProofRun } from '../device/proof.ts';
import type { ModelLoad, ProviderName } from '../executor/protocol.ts';
import type { DeviceAbilities } from '../model/graph-variant.ts';
import type { ModelManifest } from '../model/manifest.ts';
import { prepareModels } from '../model/prepare.ts';
import { resolveModels, type LocateModel, type ModelSettings, type ServedModels } from '../model/registry.ts';
import { proofRunsOf } from '../proof.ts';
import { loadTokenizer } from '../tokenize/load.ts';
import type { TextTokenizer } from '../tokenize/tokenizer.ts';
import { settingsFor, type DeviceGroup } from './groups.ts';

/** What opening models needs besides their names. */
export interface OpeningParts {
  readonly settings: ModelSettings & { readonly cacheDir: string };
  readonly executorEntry: string;
  readonly locateFor: (abilities: DeviceAbilities) => LocateModel;
  readonly log: { info(facts: object, message: string): void; warn(message: string): void };
  /** Ids of the loads of other groups. */
  readonly takenIds: ReadonlySet<string>;
}

/** Models that are ready to be loaded on their devices. */
export interface OpenedGroup extends DeviceGroup {
  readonly provider: ProviderName;
  readonly models: ServedModels;
  readonly tokenizers: ReadonlyMap<string, TextTokenizer>;
  readonly loads: readonly ModelLoad[];
  readonly proofRuns: readonly ProofRun[];
  /** Label of the weights in use. */
  readonly precision: string;
  readonly launch: LaunchExecutor;
}

/** The provider of a group: its devices all have the same one. */
export function providerOf(devices: readonly FoundDevice[]): ProviderName {
  const [first] = devices;
  if (first === undefined) throw new Error('a group has at least one device');
  return first.candidate.provider;
}

/** What a provider can do, from the most to the least: half precision is given up where it does not prove itself. */
export function abilitiesOf({ devices }: DeviceGroup, precision: ModelSettings['precision']): DeviceAbilities[] {
  const kind = providerOf(devices);
  const plain: DeviceAbilities = { kind, hasFloat16: false, arch: process.arch };
  if (kind === 'cpu' || !devices.every(({ verdict }) => verdict.hasFp16)) return [plain];
  const half = { ...plain, hasFloat16: true };
  return precision === 'auto' ? [half, plain] : [half];
}

/** The name of one more load of a model: the model's own for the first, then one that no other load has. */
export function freeLoadId(modelId: string, provider: ProviderName, takenIds: ReadonlySet<string>): string {
  if (!takenIds.has(modelId)) return modelId;
  const plain = `${modelId} on ${provider}`;
  let loadId = plain;
  for (let number = 2; takenIds.has(loadId); number += 1) loadId = `${plain} (${number})`;
  return loadId;
}

function withLoadId(model: ModelManifest, provider: ProviderName, takenIds: ReadonlySet<string>): ModelManifest {
  return { ...model, loadId: freeLoadId(model.modelId, provider, takenIds) };
}

function rename(models: ServedModels, provider: ProviderName, takenIds: ReadonlySet<string>): ServedModels {
  const each = (some: readonly ModelManifest[]) => some.map((model) => withLoadId(model, provider, takenIds));
  return {
    embed: each(models.embed),
    sparseEmbed: each(models.sparseEmbed),
    multiVector: each(models.multiVector),
    rerank: each(models.rerank),
    all: each(models.all),
  };
}

/**
 * The models of a group, prepared for devices with these abilities; nothing has run.
 * @throws ConfigurationError with the problems of all models
 */
export async function openGroup(
  group: DeviceGroup,
  abilities: DeviceAbilities,
  { settings, executorEntry, locateFor, log, takenIds }: OpeningParts,
): Promise<OpenedGroup> {
  const provider = providerOf(group.devices);
  const wanted = settingsFor(settings, group.uses);
  const models = rename(await resolveModels(wanted, locateFor(abilities), abilities), provider, takenIds);
  const loads = await prepareModels(models.all, settings.cacheDir, abilities);
  const tokenizers = new Map<string, TextTokenizer>();
  const proofRuns: ProofRun[] = [];
  for (const model of models.all) {
    const { folder: modelFolder, maxTokens } = model;
    const warn = (message: string) => {
      log.warn(message);
    };
    const tokenizer = await loadTokenizer({ modelFolder, maxTokens, warn });
    tokenizers.set(model.modelId, tokenizer);
    proofRuns.push(...(await proofRunsOf(model, tokenizer)));
  }
  const precision = [...new Set(models.all.map((model) => model.precision))].join('+');
  const environment = group.devices[0]?.environment ?? {};
  const launch = forkExecutor(executorEntry, environment);
  return { ...group, provider, models, tokenizers, loads, proofRuns, precision, launch };
}
