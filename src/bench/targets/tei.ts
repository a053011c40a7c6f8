/** Owns asking text-embeddings-inference. */
import { countVectors } from '../target.ts';
import type { Target } from '../target.ts';

/** Its own route: a bare list of vectors, which says nothing of tokens. */
export const teiTarget: Target = {
  path: '/embed',
  settle: async (_client, _path, model) => ({ model, encoding: 'json' }),
  body: ({ texts }) => ({ inputs: texts, truncate: true }),
  read: (body) => ({ vectors: countVectors(body), tokens: null }),
};
