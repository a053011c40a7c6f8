/** Owns which models the process serves, resolved once from the settings. */
import { realpath, stat } from 'node:fs/promises';
import { basename, isAbsolute, resolve } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { cachedRepository } from './catalog.ts';
import { gather } from './gather.ts';
import { thisCpu } from './graph-variant.ts';
import type { DeviceAbilities } from './graph-variant.ts';
import type { ModelManifest, Precision } from './manifest.ts';
import { readModelFolder } from './read-folder.ts';
import type { FolderOptions } from './read-folder.ts';
import { useRules } from './role.ts';
import type { ModelUse } from './role.ts';

/** The settings that name models: folders, names of folders in `modelsDir`, or names on the hub. */
export interface ModelSettings {
  readonly modelsDir: string;
  readonly embedModel: readonly string[];
  readonly sparseModel: readonly string[];
  readonly multiModel: readonly string[];
  readonly rerankModel: readonly string[];
  readonly precision: Precision | 'auto';
}

/** The models of each use, in the order of the settings; deep-frozen. */
export interface ServedModels {
  readonly embed: readonly ModelManifest[];
  readonly sparseEmbed: readonly ModelManifest[];
  readonly multiVector: readonly ModelManifest[];
  /** Cross-encoders and generative rerankers; ranking by rows is the multi-vector models'. */
  readonly rerank: readonly ModelManifest[];
  /** Each model once. */
  readonly all: readonly ModelManifest[];
}

/** Where a model named on the hub lies. */
export interface LocatedModel {
  readonly folder: string;
  /** Folder of its graph files, which may come from another repository. */
  readonly graphFolder: string;
  /** Name on the hub, without a revision. */
  readonly repository: string;
}

/**
 * The place of the model with this name, got first if need be; null where the setting is not such a name.
 * Rejects with a ConfigurationError where it cannot be got.
 */
export type LocateModel = (setting: string) => Promise<LocatedModel | null>;

/** A model's folder, the name it is known by, and what else its files do not say. */
interface FoundModel extends FolderOptions {
  readonly folder: string;
  readonly modelId: string;
}

/** The same object, it and all that it holds frozen. */
function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

/** Says of the hub's refusal that there is no folder of that name either: the setting may have meant one. */
const refuseAs =
  (missing: string) =>
  (error: unknown): never => {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new ConfigurationError(error.problems.map((problem) => `${missing}, and on the hub: ${problem}`));
  };

/** The real path of a model's folder, so that two names of one folder are one model. */
async function findFolder(
  modelsDir: string,
  use: ModelUse,
  setting: string,
  locate: LocateModel | null,
): Promise<FoundModel> {
  const places = isAbsolute(setting) ? [setting] : [resolve(modelsDir, setting), resolve(setting)];
  for (const place of places) {
    if (!(await isFolder(place))) continue;
    const folder = await realpath(place);
    // A folder in the hub's cache is called after a commit.
    return { folder, modelId: cachedRepository(folder) ?? basename(folder) };
  }
  const looked = [...new Set(places)].join(' or ');
  const missing = `${useRules[use].setting}: there is no model folder ${looked}`;
  const located = (await locate?.(setting).catch(refuseAs(missing))) ?? null;
  // Not the folder's own name, which is a commit; the revision is known by the weights' hash.
  if (located !== null) {
    const { repository, graphFolder } = located;
    return { folder: await realpath(located.folder), modelId: repository, repository, graphFolder };
  }
  throw new ConfigurationError([missing]);
}

/** Uses of each folder, in the order of the uses. */
function usesByFolder(found: readonly { readonly use: ModelUse; readonly folder: string }[]): Map<string, ModelUse[]> {
  const uses = new Map<string, ModelUse[]>();
  for (const { use, folder } of found) {
    const its = uses.get(folder) ?? [];
    if (!its.includes(use)) uses.set(folder, [...its, use]);
  }
  return uses;
}

/** Two folders of one name would be one model in every table and message. */
function nameProblems(modelIds: ReadonlyMap<string, string>): string[] {
  return [...modelIds].flatMap(([folder, modelId]) => {
    const first = [...modelIds].find(([, other]) => other === modelId)?.[0];
    return first === folder ? [] : [`${folder} and ${String(first)} have the same name: rename one`];
  });
}

/** Each use with each setting that names a model for it. */
function namedUses(settings: ModelSettings): { readonly use: ModelUse; readonly setting: string }[] {
  const names: Readonly<Record<ModelUse, readonly string[]>> = {
    embed: settings.embedModel,
    sparseEmbed: settings.sparseModel,
    multiVector: settings.multiModel,
    rerank: settings.rerankModel,
  };
  return (Object.keys(names) as ModelUse[]).flatMap((use) => names[use].map((setting) => ({ use, setting })));
}

/**
 * The models that the settings name, read and checked for the device that will run them.
 * @throws ConfigurationError with the problems of all models
 */
export async function resolveModels(
  settings: ModelSettings,
  locate: LocateModel | null = null,
  device: DeviceAbilities = thisCpu,
): Promise<ServedModels> {
  const problems: string[] = [];
  const collect = (error: unknown): null => {
    if (!(error instanceof ConfigurationError)) throw error;
    problems.push(...error.problems);
    return null;
  };
  const places = await Promise.all(
    namedUses(settings).map(async ({ use, setting }) => {
      const model = await findFolder(settings.modelsDir, use, setting, locate).catch(collect);
      return model === null ? null : { use, ...model };
    }),
  );
  const found = places.filter((place) => place !== null);
  const uses = usesByFolder(found);
  const options = new Map(found.map(({ folder, use: _, ...model }) => [folder, { ...model, device }]));
  problems.push(...nameProblems(new Map(found.map(({ folder, modelId }) => [folder, modelId]))));
  const reads = [...uses].map(([folder, its]) => readModelFolder(folder, its, settings.precision, options.get(folder)));
  const all = await gather(reads).catch(collect);
  if (all === null || problems.length > 0) throw new ConfigurationError(problems);
  const modelsOf = (use: ModelUse): ModelManifest[] => {
    const folders = new Set(found.filter((model) => model.use === use).map(({ folder }) => folder));
    return [...folders].flatMap((folder) => all.filter((model) => model.folder === folder));
  };
  return deepFreeze({
    embed: modelsOf('embed'),
    sparseEmbed: modelsOf('sparseEmbed'),
    multiVector: modelsOf('multiVector'),
    rerank: modelsOf('rerank'),
    all,
  });
}

/** A name such as `org/model@revision`, which only the hub can judge. */
const hubName = /^[\w.-]+\/[\w.-]+(@|$)/;

/** What is wrong with the models that the settings name, as far as this machine knows them; names on the hub are left out. */
export async function localModelProblems(settings: ModelSettings): Promise<readonly string[]> {
  const local = (names: readonly string[]) => names.filter((name) => !hubName.test(name));
  const { embedModel, sparseModel, multiModel, rerankModel } = settings;
  try {
    await resolveModels({
      ...settings,
      embedModel: local(embedModel),
      sparseModel: local(sparseModel),
      multiModel: local(multiModel),
      rerankModel: local(rerankModel),
    });
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}
