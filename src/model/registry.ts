/** Owns which models the process serves, resolved once from the settings. */
import { realpath, stat } from 'node:fs/promises';
import { basename, isAbsolute, resolve } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { gather } from './gather.ts';
import type { ModelManifest, Precision } from './manifest.ts';
import { readModelFolder } from './read-folder.ts';
import { useRules } from './role.ts';
import type { ModelUse } from './role.ts';

/** The settings that name models: a folder, the name of one in `modelsDir`, a name on the hub, or `none`. */
export interface ModelSettings {
  readonly modelsDir: string;
  readonly embedModel: string;
  readonly sparseModel: string;
  readonly multiModel: string;
  readonly rerankModel: string;
  readonly precision: Precision | 'auto';
}

/** The model of each use, null where none is configured; deep-frozen. */
export interface ServedModels {
  readonly embed: ModelManifest | null;
  readonly sparseEmbed: ModelManifest | null;
  readonly multiVector: ModelManifest | null;
  /** The cross-encoder; ranking by rows is the multi-vector model's. */
  readonly rerank: ModelManifest | null;
  /** Each model once. */
  readonly all: readonly ModelManifest[];
}

/**
 * The folder of the model with this name, got first if need be; null where the setting is not such a name.
 * Rejects with a ConfigurationError where it cannot be got.
 */
export type LocateModel = (setting: string) => Promise<string | null>;

/** A model's folder, and the name it is known by. */
interface FoundModel {
  readonly folder: string;
  readonly modelId: string;
}

/** The setting that turns a use off. */
const noModel = 'none';

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
    return { folder, modelId: basename(folder) };
  }
  const looked = [...new Set(places)].join(' or ');
  const missing = `${useRules[use].setting}: there is no model folder ${looked}`;
  const located = (await locate?.(setting).catch(refuseAs(missing))) ?? null;
  // Not the folder's own name, which is a commit; the revision is known by the weights' hash.
  if (located !== null) return { folder: await realpath(located), modelId: setting.replace(/@.*$/u, '') };
  throw new ConfigurationError([missing]);
}

/** Uses of each folder, in the order of the uses. */
function usesByFolder(found: readonly { readonly use: ModelUse; readonly folder: string }[]): Map<string, ModelUse[]> {
  const uses = new Map<string, ModelUse[]>();
  for (const { use, folder } of found) uses.set(folder, [...(uses.get(folder) ?? []), use]);
  return uses;
}

/** Two folders of one name would be one model in every table and message. */
function nameProblems(modelIds: ReadonlyMap<string, string>): string[] {
  return [...modelIds].flatMap(([folder, modelId]) => {
    const first = [...modelIds].find(([, other]) => other === modelId)?.[0];
    return first === folder ? [] : [`${folder} and ${String(first)} have the same name: rename one`];
  });
}

/**
 * The models that the settings name, read and checked.
 * @throws ConfigurationError with the problems of all models
 */
export async function resolveModels(settings: ModelSettings, locate: LocateModel | null = null): Promise<ServedModels> {
  const named: readonly (readonly [ModelUse, string])[] = [
    ['embed', settings.embedModel],
    ['sparseEmbed', settings.sparseModel],
    ['multiVector', settings.multiModel],
    ['rerank', settings.rerankModel],
  ];
  const problems: string[] = [];
  const collect = (error: unknown): null => {
    if (!(error instanceof ConfigurationError)) throw error;
    problems.push(...error.problems);
    return null;
  };
  const wanted = named.filter(([, setting]) => setting !== noModel);
  const places = await Promise.all(
    wanted.map(async ([use, setting]) => {
      const model = await findFolder(settings.modelsDir, use, setting, locate).catch(collect);
      return model === null ? null : { use, ...model };
    }),
  );
  const found = places.filter((place) => place !== null);
  const uses = usesByFolder(found);
  const modelIds = new Map(found.map(({ folder, modelId }) => [folder, modelId]));
  problems.push(...nameProblems(modelIds));
  const reads = [...uses].map(([folder, its]) =>
    readModelFolder(folder, its, settings.precision, modelIds.get(folder)),
  );
  const all = await gather(reads).catch(collect);
  if (all === null || problems.length > 0) throw new ConfigurationError(problems);
  const modelOf = (use: ModelUse): ModelManifest | null => {
    const folder = found.find((model) => model.use === use)?.folder;
    return all.find((model) => model.folder === folder) ?? null;
  };
  return deepFreeze({
    embed: modelOf('embed'),
    sparseEmbed: modelOf('sparseEmbed'),
    multiVector: modelOf('multiVector'),
    rerank: modelOf('rerank'),
    all,
  });
}

/** A name such as `org/model@revision`, which only the hub can judge. */
const hubName = /^[\w.-]+\/[\w.-]+(@|$)/;

/** What is wrong with the models that the settings name, as far as this machine knows them; names on the hub are left out. */
export async function localModelProblems(settings: ModelSettings): Promise<readonly string[]> {
  const local = (name: string) => (hubName.test(name) ? noModel : name);
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
