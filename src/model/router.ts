/** Owns the Router of sparse models whose queries are looked up instead of run. */
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigurationError } from '../errors.ts';
import { refuse } from './gather.ts';
import { readJson, readOptionalJson } from './json-file.ts';
import type { SpladeRules } from './sparse-rules.ts';
import { believableTokens } from './token-limit.ts';

const routerSchema = z.object({
  types: z.record(z.string(), z.string()),
  structure: z.record(z.string(), z.array(z.string())),
});
const tokenizerSchema = z.object({ model_max_length: z.unknown().optional() });

/** The two ways through a Router. */
export interface SparseRouter {
  readonly routerPath: string;
  /** Modules of documents. */
  readonly document: readonly { readonly path: string; readonly type: string }[];
  /** The weight of each vocabulary entry in a query, and the limit of the tokenizer in that module's own folder. */
  readonly query: Pick<SpladeRules, 'queryTermWeights' | 'maxQueryTokens'>;
}

/** Class name of a module. */
const nameOf = (type: string): string => type.slice(type.lastIndexOf('.') + 1);

/**
 * The ways through a Router: documents run, queries are looked up.
 * @throws ConfigurationError where it routes anything else
 */
export async function readSparseRouter(folder: string): Promise<SparseRouter> {
  const routerPath = join(folder, 'router_config.json');
  const { types, structure } = await readJson(routerPath, routerSchema);
  const missing = (['query', 'document'] as const).filter((kind) => (structure[kind] ?? []).length === 0);
  refuse(missing.map((kind) => `${routerPath}: has no module for ${kind} texts, a sparse model needs both kinds`));
  const moduleOf = (path: string) => ({ path, type: types[path] ?? path.slice(path.lastIndexOf('_') + 1) });
  const query = (structure['query'] ?? []).map(moduleOf);
  const document = (structure['document'] ?? []).map(moduleOf);
  const [lookUp] = query;
  if (lookUp === undefined || query.length > 1 || nameOf(lookUp.type) !== 'SparseStaticEmbedding') {
    const names = query.map(({ type }) => nameOf(type)).join(', ');
    throw new ConfigurationError([
      `${routerPath}: queries go through "${names}", only SparseStaticEmbedding is supported in a Router`,
    ]);
  }
  const queryFolder = join(folder, lookUp.path);
  const tokenizer = await readOptionalJson(join(queryFolder, 'tokenizer_config.json'), tokenizerSchema);
  return {
    routerPath,
    document,
    query: {
      queryTermWeights: { path: join(queryFolder, 'model.safetensors'), name: 'weight' },
      maxQueryTokens: believableTokens(tokenizer?.model_max_length),
    },
  };
}
