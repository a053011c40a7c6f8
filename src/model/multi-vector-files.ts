/** Owns what folders of sentence-transformers' own late-interaction models state about their rows. */
import { join } from 'node:path';
import { z } from 'zod';
import { refuse } from './gather.ts';
import { readOptionalJson } from './json-file.ts';
import type { TokenMask } from './token-mask.ts';
import type { StatedTokenRows } from './token-row-rules.ts';

const tokens = z.int().positive().nullish();

/** What fills queries. */
const expansionSchema = z.strictObject({
  strategy: z.enum(['fixed', 'min']),
  attend: z.boolean().default(false),
  token: z.string().nullish(),
  length: z.int().positive(),
});
const encoderSchema = z.object({
  query_length: tokens,
  document_length: tokens,
  query_expansion: expansionSchema.nullish(),
});
type Encoder = z.infer<typeof encoderSchema>;

const modelSchema = z.object({ model_type: z.string().nullish(), similarity_fn_name: z.string().nullish() });

/** What `config_sentence_transformers.json` calls such a model. */
const modelType = 'MultiVectorEncoder';

/** Lengths of queries: `fixed` fills and cuts them to one, `min` only fills them. */
function queryLengths({ query_length, query_expansion }: Encoder): StatedTokenRows {
  if (query_expansion?.strategy === 'fixed') return { maxQueryTokens: query_expansion.length };
  return { maxQueryTokens: query_length ?? null, minQueryTokens: query_expansion?.length ?? null };
}

function problemsOf(path: string, { query_length, query_expansion }: Encoder, mask: TokenMask | null): string[] {
  if (!query_expansion) return [];
  const isTooShort = (query_length ?? Infinity) < query_expansion.length;
  return [
    ...(isTooShort ? [`${path}: query_length is less than the length that query_expansion fills queries to`] : []),
    // The filling has rows only through the mask.
    ...(mask === null ? [`${path}: query_expansion without a MultiVectorMask module is not supported`] : []),
  ];
}

/** What a mask leaves out of each kind of text; without one, every token has a row. */
export const skipsOf = (mask: TokenMask | null): StatedTokenRows => ({
  documentSkipTokens: mask?.skipsInDocuments === true ? mask.skipTokens : [],
  querySkipTokens: mask?.skipsInQueries === true ? mask.skipTokens : [],
});

/**
 * What a folder of this kind states about rows: lengths and filling in the encoder's file, skipped tokens in `mask`.
 * Its markers are prompts. null for a folder of another kind.
 * @throws ConfigurationError
 * @source sentence-transformers, `MultiVectorEncoder`, `Transformer.preprocess`
 */
export async function readStatedMultiVector(folder: string, mask: TokenMask | null): Promise<StatedTokenRows | null> {
  const model = await readOptionalJson(join(folder, 'config_sentence_transformers.json'), modelSchema);
  if (model?.model_type !== modelType && mask === null) return null;
  const path = join(folder, 'sentence_bert_config.json');
  const encoder: Encoder = (await readOptionalJson(path, encoderSchema)) ?? {};
  refuse(problemsOf(path, encoder, mask));
  return {
    ...skipsOf(mask),
    ...queryLengths(encoder),
    queryMarker: '',
    documentMarker: '',
    maxDocumentTokens: encoder.document_length ?? null,
    expandsQueries: (encoder.query_expansion ?? null) !== null,
    isExpansionAttended: encoder.query_expansion?.attend ?? false,
    expansionToken: encoder.query_expansion?.token ?? undefined,
    isMaxSimAveraged: model?.similarity_fn_name === 'meanmaxsim',
  };
}
