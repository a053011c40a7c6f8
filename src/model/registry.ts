/** Owns which models the process serves, resolved once from the settings. */
import { realpath, stat } from 'node:fs/promises';
import { basename, isAbsolute, resolve } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { gather } from './gather.ts';
import type { ModelManifest, Precision } from './manifest.ts';
import { readModelFolder } from './read-folder.ts';
import { useRules } from './role.ts';
import type { ModelUse } from './role.ts';

/** The settings that name models: a folder, the name of one in `modelsDir`, or `none`. */
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

/** The real path of a model's folder, so that two names of one folder are one model. */
async function findFolder(modelsDir: string, use: ModelUse, setting: string): Promise<string> {
  const places = isAbsolute(setting) ? [setting] : [resolve(modelsDir, setting), resolve(setting)];
  for (const place of places) {
    if (await isFolder(place)) return realpath(place);
  }
  const looked = [...new Set(places)].join(' or ');
  throw new ConfigurationError([`${useRules[use].setting}: there is no model folder ${looked}`]);
}

/** Uses of each folder, in the order of the uses. */
function usesByFolder(found: readonly (readonly [ModelUse, string])[]): Map<string, ModelUse[]> {
  const uses = new Map<string, ModelUse[]>();
  for (const [use, folder] of found) uses.set(folder, [...(uses.get(folder) ?? []), use]);
  return uses;
}

/** Two folders of one name would be one model in every table and message. */
function nameProblems(folders: readonly string[]): string[] {
  return folders.flatMap((folder, index) => {
    const first = folders.find((other) => basename(other) === basename(folder));
    return first === folders[index] ? [] : [`${folder} and ${String(first)} have the same name: rename one`];
  });
}

/**
 * The models that the settings name, read and checked.
 * @throws ConfigurationError with the problems of all models
 */
export async function resolveModels(settings: ModelSettings): Promise<ServedModels> {
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
      const folder = await findFolder(settings.modelsDir, use, setting).catch(collect);
      return folder === null ? null : ([use, folder] as const);
    }),
  );
  const found = places.filter((place) => place !== null);
  const uses = usesByFolder(found);
  problems.push(...nameProblems([...uses.keys()]));
  const reads = [...uses].map(([folder, its]) => readModelFolder(folder, its, settings.precision));
  const all = await gather(reads).catch(collect);
  if (all === null || problems.length > 0) throw new ConfigurationError(problems);
  const modelOf = (use: ModelUse): ModelManifest | null => {
    const folder = found.find(([its]) => its === use)?.[1];
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
