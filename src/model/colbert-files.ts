/** Owns what the files of late-interaction models state about their rows. */
import { join } from 'node:path';
import { z } from 'zod';
import { readOptionalJson } from './json-file.ts';
import { readStatedMultiVector, skipsOf } from './multi-vector-files.ts';
import type { TokenMask } from './token-mask.ts';
import { punctuation } from './token-row-rules.ts';
import type { StatedTokenRows } from './token-row-rules.ts';

const tokens = z.int().positive().nullish();

/** What the files of a late-interaction model state. */
export interface StatedColbert {
  readonly rows: StatedTokenRows;
  /** Length of a row, where a file says it; the layers say it otherwise. */
  readonly dimension?: number | undefined;
}

/** What PyLate adds to `config_sentence_transformers.json`. */
const pylateSchema = z.object({
  query_prefix: z.string().nullish(),
  document_prefix: z.string().nullish(),
  query_length: tokens,
  document_length: tokens,
  attend_to_expansion_tokens: z.boolean().nullish(),
  do_query_expansion: z.boolean().nullish(),
  skiplist_words: z.array(z.string()).nullish(),
});

/** What the original ColBERT writes. */
const artifactSchema = z.object({
  query_token_id: z.string().nullish(),
  doc_token_id: z.string().nullish(),
  query_maxlen: tokens,
  doc_maxlen: tokens,
  attend_to_mask_tokens: z.boolean().nullish(),
  mask_punctuation: z.boolean().nullish(),
  dim: z.int().positive().nullish(),
});

function fromPylate(file: z.infer<typeof pylateSchema>): StatedColbert | null {
  const isPylate = [file.query_prefix, file.document_prefix, file.query_length].some(
    (value) => (value ?? null) !== null,
  );
  if (!isPylate) return null;
  return {
    rows: {
      queryMarker: file.query_prefix ?? undefined,
      documentMarker: file.document_prefix ?? undefined,
      maxQueryTokens: file.query_length ?? undefined,
      maxDocumentTokens: file.document_length ?? undefined,
      isExpansionAttended: file.attend_to_expansion_tokens ?? undefined,
      expandsQueries: file.do_query_expansion ?? undefined,
      documentSkipTokens: file.skiplist_words ?? undefined,
    },
  };
}

/** @source ColBERT, `colbert/infra/config/settings.py`: the markers' defaults */
function fromArtifact(file: z.infer<typeof artifactSchema>): StatedColbert {
  const rows = {
    queryMarker: file.query_token_id ?? '[unused0]',
    documentMarker: file.doc_token_id ?? '[unused1]',
    maxQueryTokens: file.query_maxlen ?? undefined,
    maxDocumentTokens: file.doc_maxlen ?? undefined,
    isExpansionAttended: file.attend_to_mask_tokens ?? undefined,
    expandsQueries: true,
    documentSkipTokens: file.mask_punctuation === false ? [] : punctuation,
  };
  return { rows, dimension: file.dim ?? undefined };
}

/** Architecture name in the configuration of models that the original ColBERT trained. */
export const originalColbert = 'HF_ColBERT';

/**
 * What the folder states about rows, in PyLate's file, else in those of sentence-transformers, else in ColBERT's own;
 * null where none says anything.
 * @throws ConfigurationError
 */
export async function readStatedColbert(
  folder: string,
  architecture: string,
  mask: TokenMask | null,
): Promise<StatedColbert | null> {
  const pylate = await readOptionalJson(join(folder, 'config_sentence_transformers.json'), pylateSchema);
  const stated = pylate === null ? null : fromPylate(pylate);
  // Where a module states the skipped tokens, it goes before what the older file says of them.
  if (stated !== null) return { ...stated, rows: { ...stated.rows, ...(mask === null ? {} : skipsOf(mask)) } };
  const rows = await readStatedMultiVector(folder, mask);
  if (rows !== null) return { rows };
  const artifact = await readOptionalJson(join(folder, 'artifact.metadata'), artifactSchema);
  if (artifact !== null) return fromArtifact(artifact);
  return architecture === originalColbert ? fromArtifact({}) : null;
}
