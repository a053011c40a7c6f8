/** Owns `modules.json`: which steps follow the encoder, and whether all of them can be served. */
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigurationError } from '../errors.ts';
import { refuse } from './gather.ts';
import { readOptionalJson } from './json-file.ts';
import { readDense, readLayerNorm, readPooling, readSplade, isTokenLevel } from './module-files.ts';
import { readSparseRouter } from './router.ts';
import { readSentenceLimit } from './token-limit.ts';
import { readTokenMask } from './token-mask.ts';
import type { TokenMask } from './token-mask.ts';
import type { SpladeRules } from './sparse-rules.ts';
import type { VectorStep } from './vector-steps.ts';

/** One module: the folder of its files and the path of its class. */
export interface Module {
  readonly path: string;
  readonly type: string;
}

const modulesSchema = z.array(z.object({ path: z.string(), type: z.string() }));

/** What the steps after the encoder make of its output. */
export interface ModuleChain {
  /** `vector` a pooled one, `terms` a sparse one, `rows` one for each token; null where nothing follows the encoder. */
  readonly makes: 'vector' | 'terms' | 'rows' | null;
  /** From the encoder's rows to the result. */
  readonly steps: readonly VectorStep[];
  readonly includesPrompt: boolean;
  readonly splade: SpladeRules | null;
  /** Tokens that have no row, where a module says so. */
  readonly mask: TokenMask | null;
  /** Limit that the encoder's own folder states, where that is not the model's; null where it states none. */
  readonly maxTokens: number | null;
}

/** Nothing follows the encoder. */
export const noModules: ModuleChain = {
  makes: null,
  steps: [],
  includesPrompt: true,
  splade: null,
  mask: null,
  maxTokens: null,
};

/** Class name of a module, whatever package path the version that wrote it used. */
const moduleName = ({ type }: Module): string => type.slice(type.lastIndexOf('.') + 1);

const encoderNames = ['Transformer', 'MLMTransformer', 'MultiVectorTransformer'];

/** The chain of modules, every one of which will be applied. */
async function readChain(
  folder: string,
  path: string,
  modules: readonly Module[],
  mayLieElsewhere = false,
): Promise<ModuleChain> {
  const refusal = (module: Module | undefined): ConfigurationError => {
    const name = module === undefined ? 'nothing' : moduleName(module);
    return new ConfigurationError([`${path}: module "${name}" is not supported in this place`]);
  };
  const [encoder, ...rest] = modules;
  if (encoder === undefined || !encoderNames.includes(moduleName(encoder))) throw refusal(encoder);
  const isElsewhere = encoder.path !== '';
  if (isElsewhere && !mayLieElsewhere) {
    throw new ConfigurationError([`${path}: the encoder lies in "${encoder.path}", not beside it`]);
  }
  let chain = isElsewhere
    ? { ...noModules, maxTokens: await readSentenceLimit(join(folder, encoder.path)) }
    : noModules;
  for (const module of rest) {
    const next = await applyModule(join(folder, module.path), module, chain);
    if (next === null) throw refusal(module);
    chain = next;
  }
  return chain;
}

/** The chain with one more module; null where the module cannot stand there. */
async function applyModule(folder: string, module: Module, chain: ModuleChain): Promise<ModuleChain | null> {
  const add = (makes: ModuleChain['makes'], step: VectorStep): ModuleChain => ({
    ...chain,
    makes,
    steps: [...chain.steps, step],
  });
  const isPooled = chain.makes === 'vector';
  if (chain.makes === 'terms') return null;
  switch (moduleName(module)) {
    case 'Pooling': {
      // A pooling behind a mask would leave out what the mask does.
      if (isPooled || chain.mask !== null) return null;
      const { modes, includesPrompt } = await readPooling(folder);
      return { ...add('vector', { kind: 'pool', modes }), includesPrompt };
    }
    case 'Dense':
      // Behind a pooling, a layer over the rows would change nothing of the vector.
      if (isPooled && (await isTokenLevel(folder))) return null;
      return add(isPooled ? 'vector' : 'rows', await readDense(folder));
    case 'LayerNorm':
      return isPooled ? add('vector', await readLayerNorm(folder)) : null;
    case 'Normalize':
      return add(isPooled ? 'vector' : 'rows', { kind: 'normalize' });
    case 'Dropout':
      return chain;
    case 'MultiVectorMask':
      return isPooled ? null : { ...chain, makes: 'rows', mask: await readTokenMask(folder) };
    case 'SpladePooling':
      return chain.makes === null ? { ...chain, makes: 'terms', splade: await readSplade(folder) } : null;
    default:
      return null;
  }
}

/**
 * The steps of a folder, every one of which will be applied; none where it has no `modules.json`.
 * @throws ConfigurationError naming the module that cannot be applied
 */
export async function readModules(folder: string): Promise<ModuleChain> {
  const path = join(folder, 'modules.json');
  const modules = await readOptionalJson(path, modulesSchema);
  if (modules === null) return noModules;
  const [first, ...rest] = modules;
  if (first === undefined || moduleName(first) !== 'Router') return readChain(folder, path, modules);
  refuse(rest.map((module) => `${path}: module "${moduleName(module)}" behind a Router is not supported`));
  const { document, query, routerPath } = await readSparseRouter(join(folder, first.path));
  // Its encoder's files may lie in a folder of their own; what is served is the graph of the folder itself.
  const chain = await readChain(join(folder, first.path), routerPath, document, true);
  if (chain.splade === null) throw new ConfigurationError([`${routerPath}: its documents are no sparse vectors`]);
  return { ...chain, splade: { ...chain.splade, ...query } };
}
