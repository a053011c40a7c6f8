/** Owns the description of the rerank routes of Jina's clients. */
import type { ApiFacts, FamilyWords, RouteWords } from './api.ts';
import { rerankBody } from './cohere.ts';
import { full, ref, text, type Schema } from './schema.ts';

/** Schemas of the components. */
export const jinaSchemas: Readonly<Record<string, Schema>> = {
  JinaError: full({ id: text(), detail: text(), message: text() }),
};

/** The routes as configured. */
export function describeJina(facts: ApiFacts): FamilyWords {
  const rerank: RouteWords = {
    summary: 'Rerank as Jina has it',
    description: 'Orders documents by how well they answer the query. A body with `documents` is a call of this kind.',
    body: rerankBody(facts),
    answer: { description: 'The documents, best first.', schema: ref('Rerank') },
    task: 'rerank',
  };
  return {
    tag: 'Jina',
    error: 'JinaError',
    routes: {
      'POST /v1/rerank': {
        ...rerank,
        summary: 'Rerank as Jina has it, and Cohere in its version 1',
        description:
          'Orders documents by how well they answer the query. Documents come back unless `return_documents` is false, and to clients of Cohere only where it is true.',
      },
      'POST /rerank': rerank,
    },
  };
}
