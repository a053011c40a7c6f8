/** Owns `config.json` and the small files beside it: architecture, sizes, limits, prompts. */
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigurationError } from '../errors.ts';
import { gather } from './gather.ts';
import { readJson, readOptionalJson } from './json-file.ts';
import type { Prompts } from './manifest.ts';
import { believableTokens, positionPadId, readSentenceLimit, smallestLimit, usablePositions } from './token-limit.ts';

const configSchema = z.object({
  architectures: z.array(z.string()).nullish(),
  model_type: z.string().default(''),
  hidden_size: z.int().positive().optional(),
  /** Words for the hidden size in DistilBERT, in the GPT family and in T5. */
  dim: z.int().positive().optional(),
  n_embd: z.int().positive().optional(),
  d_model: z.int().positive().optional(),
  vocab_size: z.int().positive(),
  max_position_embeddings: z.unknown().optional(),
  n_positions: z.unknown().optional(),
  matryoshka_dimensions: z.array(z.int().positive()).nullish(),
  pad_token_id: z.int().nullish(),
  num_labels: z.int().positive().optional(),
  id2label: z.record(z.string(), z.unknown()).nullish(),
});
/** A special token: its text, or an object that holds it. */
const tokenSchema = z
  .union([z.string(), z.object({ content: z.string() })])
  .nullish()
  .transform((token) => (typeof token === 'string' ? token : (token?.content ?? null)))
  .catch(null);
const tokenizerSchema = z.object({
  model_max_length: z.unknown().optional(),
  bos_token: tokenSchema,
  eos_token: tokenSchema,
  unk_token: tokenSchema,
  sep_token: tokenSchema,
  pad_token: tokenSchema,
  cls_token: tokenSchema,
  mask_token: tokenSchema,
});
/** Most prompts that a model's files may name. */
const maxPrompts = 1024;
/** @unit characters */
const maxPromptName = 256;
/** @unit characters */
const maxPrompt = 65_536;
const promptsSchema = z
  .record(z.string().max(maxPromptName), z.string().max(maxPrompt).nullable())
  .refine((prompts) => Object.keys(prompts).length <= maxPrompts, `has more than ${String(maxPrompts)} prompts`);
const sentenceSchema = z.object({
  prompts: promptsSchema.nullish(),
  default_prompt_name: z.string().nullish(),
  max_active_dims: z.int().positive().nullish(),
});

/** Texts of the special tokens, null where the tokenizer has none. */
export type SpecialTokens = Readonly<Record<'bos' | 'eos' | 'unk' | 'sep' | 'pad' | 'cls' | 'mask', string | null>>;

/** What the configuration files say, before anything is known of the graph. */
export interface FolderConfig {
  readonly architecture: string;
  readonly hiddenSize: number;
  readonly vocabularySize: number;
  /** Labels of a classifier; 2 is what the format means where nothing is said. */
  readonly labels: number;
  /** null where no file states a believable limit. */
  readonly maxTokens: number | null;
  /** Positions that a text can use; null where the model has no table of them. */
  readonly maxPositions: number | null;
  readonly prompts: Prompts;
  /** Every prompt of the file by its name. */
  readonly namedPrompts: Readonly<Record<string, string>>;
  /** Most terms of a sparse vector; null where all stay. */
  readonly maxTerms: number | null;
  readonly specialTokens: SpecialTokens;
  /** Lengths that a vector may be cut to; empty where the file names none. */
  readonly matryoshkaDimensions: readonly number[];
  /** The padding id behind which positions start; null where they count from 0. */
  readonly positionPadId: number | null;
}

function specialTokensOf(file: z.infer<typeof tokenizerSchema> | null): SpecialTokens {
  return {
    bos: file?.bos_token ?? null,
    eos: file?.eos_token ?? null,
    unk: file?.unk_token ?? null,
    sep: file?.sep_token ?? null,
    pad: file?.pad_token ?? null,
    cls: file?.cls_token ?? null,
    mask: file?.mask_token ?? null,
  };
}

/**
 * The prompt of each kind: exactly the one of its name, and the default one for texts without a kind. The reference
 * puts empty prompts for `query` and `document` where the file has none, and these go before `passage`, `corpus` and
 * the default.
 * @source sentence-transformers 5 and 6, `encode_query`, `encode_document`
 */
export function choosePrompts(
  file: Pick<z.infer<typeof sentenceSchema>, 'prompts' | 'default_prompt_name'> | null,
): Prompts {
  const prompts = file?.prompts ?? {};
  const choose = (name: string | null | undefined): string => prompts[name ?? ''] ?? '';
  return { query: choose('query'), document: choose('document'), unspecified: choose(file?.default_prompt_name) };
}

/** Every prompt of the file by its name; one that is null is empty. */
const namedPromptsOf = (prompts: z.infer<typeof promptsSchema>): Record<string, string> =>
  Object.fromEntries(Object.entries(prompts).map(([name, prompt]) => [name, prompt ?? '']));

/**
 * What the configuration files of a folder say.
 * @throws ConfigurationError
 */
export async function readFolderConfig(folder: string): Promise<FolderConfig> {
  const reads = [
    readJson(join(folder, 'config.json'), configSchema),
    readSentenceLimit(folder),
    readOptionalJson(join(folder, 'tokenizer_config.json'), tokenizerSchema),
    readOptionalJson(join(folder, 'config_sentence_transformers.json'), sentenceSchema),
  ] as const;
  await gather<unknown>(reads);
  const [config, sentenceLimit, tokenizer, sentence] = await Promise.all(reads);
  const hiddenSize = config.hidden_size ?? config.dim ?? config.n_embd ?? config.d_model;
  if (hiddenSize === undefined)
    throw new ConfigurationError([`${join(folder, 'config.json')}: hidden_size is missing`]);
  const padId = config.pad_token_id ?? 1;
  const maxPositions = usablePositions(config.model_type, config.max_position_embeddings ?? config.n_positions, padId);
  return {
    architecture: config.architectures?.[0] ?? '',
    hiddenSize,
    vocabularySize: config.vocab_size,
    labels: config.num_labels ?? (config.id2label ? Object.keys(config.id2label).length : 2),
    maxTokens: smallestLimit([sentenceLimit, believableTokens(tokenizer?.model_max_length), maxPositions]),
    maxPositions,
    prompts: choosePrompts(sentence),
    namedPrompts: namedPromptsOf(sentence?.prompts ?? {}),
    maxTerms: sentence?.max_active_dims ?? null,
    specialTokens: specialTokensOf(tokenizer),
    matryoshkaDimensions: config.matryoshka_dimensions ?? [],
    positionPadId: positionPadId(config.model_type, padId),
  };
}
