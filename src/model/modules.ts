/** Owns `modules.json`: which steps follow the encoder, and whether all of them can be served. */
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigurationError } from '../errors.ts';
import { refuse } from './gather.ts';
import { readJson, readOptionalJson } from './json-file.ts';
import type { Pooling } from './manifest.ts';

const modulesSchema = z.array(z.object({ path: z.string(), type: z.string() }));
const poolingSchema = z.record(z.string(), z.unknown());
const spladeSchema = z.object({
  pooling_strategy: z.string().default('max'),
  activation_function: z.string().default('relu'),
});

type Module = z.infer<typeof modulesSchema>[number];

/** What the steps after the encoder make of its output. */
export interface ModuleChain {
  /** `vector` a pooled one, `terms` a sparse one; null where nothing follows the encoder. */
  readonly makes: 'vector' | 'terms' | null;
  readonly pooling: Pooling | null;
  readonly isNormalized: boolean;
}

/** Nothing follows the encoder. */
export const noModules: ModuleChain = { makes: null, pooling: null, isNormalized: false };

/** Poolings that have a kernel, by the name that sentence-transformers gives them. */
const supportedPoolings: Readonly<Record<string, Pooling>> = { mean: 'mean', cls: 'cls' };

/** The switch of each pooling in the older form of its file. */
const poolingSwitches: Readonly<Record<string, string>> = {
  pooling_mode_cls_token: 'cls',
  pooling_mode_mean_tokens: 'mean',
  pooling_mode_max_tokens: 'max',
  pooling_mode_mean_sqrt_len_tokens: 'mean_sqrt_len_tokens',
  pooling_mode_weightedmean_tokens: 'weightedmean',
  pooling_mode_lasttoken: 'lasttoken',
};

/** Names of all poolings that the file turns on; several mean that their vectors are joined. */
export function poolingNames(file: Readonly<Record<string, unknown>>): string[] {
  const mode = file['pooling_mode'];
  if (typeof mode === 'string') return [mode];
  if (Array.isArray(mode)) return mode.map(String);
  return Object.entries(poolingSwitches).flatMap(([key, name]) => (file[key] === true ? [name] : []));
}

/** Class name of a module, whatever package path the version that wrote it used. */
const moduleName = ({ type }: Module): string => type.slice(type.lastIndexOf('.') + 1);

async function readPooling(folder: string, module: Module): Promise<Pooling> {
  const path = join(folder, module.path, 'config.json');
  const file = await readJson(path, poolingSchema);
  const names = poolingNames(file);
  const pooling = names.length === 1 ? supportedPoolings[names[0] ?? ''] : undefined;
  if (pooling === undefined) {
    throw new ConfigurationError([`${path}: pooling "${names.join(' + ')}" is not supported, only mean or cls`]);
  }
  if (file['include_prompt'] === false) {
    throw new ConfigurationError([`${path}: include_prompt false is not supported`]);
  }
  return pooling;
}

async function checkSplade(folder: string, module: Module): Promise<void> {
  const path = join(folder, module.path, 'config.json');
  const { pooling_strategy: strategy, activation_function: activation } = await readJson(path, spladeSchema);
  const isSupported = strategy === 'max' && activation === 'relu';
  refuse(
    isSupported ? [] : [`${path}: SPLADE pooling "${strategy}" of "${activation}" is not supported, only max of relu`],
  );
}

/**
 * The steps of a folder, every one of which will be applied; none where it has no `modules.json`.
 * @throws ConfigurationError naming the module that cannot be applied
 */
export async function readModules(folder: string): Promise<ModuleChain> {
  const path = join(folder, 'modules.json');
  const modules = await readOptionalJson(path, modulesSchema);
  if (modules === null) return noModules;
  const [encoder, second, third, ...rest] = modules;
  const name = (module: Module | undefined): string => (module === undefined ? 'nothing' : moduleName(module));
  const refusal = (module: Module | undefined): ConfigurationError =>
    new ConfigurationError([`${path}: module "${name(module)}" is not supported in this place`]);
  if (encoder === undefined || !['Transformer', 'MLMTransformer'].includes(moduleName(encoder))) throw refusal(encoder);
  if (encoder.path !== '')
    throw new ConfigurationError([`${path}: the encoder lies in "${encoder.path}", not beside it`]);
  if (second === undefined) return noModules;
  if (moduleName(second) === 'SpladePooling') {
    if (third !== undefined) throw refusal(third);
    await checkSplade(folder, second);
    return { makes: 'terms', pooling: null, isNormalized: false };
  }
  if (moduleName(second) !== 'Pooling') throw refusal(second);
  if (third !== undefined && moduleName(third) !== 'Normalize') throw refusal(third);
  if (rest.length > 0) throw refusal(rest[0]);
  return { makes: 'vector', pooling: await readPooling(folder, second), isNormalized: third !== undefined };
}
