/** Owns making a model ready to serve: the ids and tables that its tasks need, found and checked once. */
import { ConfigurationError, ServiceError } from '../errors.ts';
import type { Head } from '../executor/protocol.ts';
import type { ModelManifest } from '../model/manifest.ts';
import { readTensor } from '../model/weights/tensor-file.ts';
import type { PromptKind } from '../tokenize/prompts.ts';
import type { TextTokenizer } from '../tokenize/tokenizer.ts';
import type { ServedModel } from './context.ts';
import { textFormOf, type FormSource } from './text-form.ts';

const kinds: readonly PromptKind[] = ['query', 'document', 'unspecified'];

/** Refuses limits that special tokens and markers fill. */
async function checkRoom(source: FormSource, head: Head): Promise<void> {
  const { modelId, maxTokens } = source.manifest;
  for (const kind of kinds) {
    const form = textFormOf(source, head, kind);
    const [empty] = await source.tokenizer.tokenize([''], undefined, form);
    const limit = form.maxTokens ?? maxTokens;
    if ((empty?.totalTokens ?? 0) < limit) continue;
    throw new ConfigurationError([`${modelId}: a limit of ${limit} tokens leaves no room for a text`]);
  }
}

async function checkTemplate({ manifest, tokenizer }: FormSource): Promise<void> {
  const { modelId, maxTokens, yesNo } = manifest;
  if (yesNo === null) return;
  try {
    await tokenizer.tokenizePairs('', [''], undefined, yesNo);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new ConfigurationError([`${modelId}: its template leaves no room for a passage in ${maxTokens} tokens`]);
  }
}

async function queryTermWeightsOf({ sparse }: ModelManifest): Promise<Float32Array | null> {
  if (sparse?.form !== 'terms' || sparse.queryTermWeights === null) return null;
  return (await readTensor(sparse.queryTermWeights)).values;
}

/**
 * The model with its tokenizer, complete: its markers are in the vocabulary, its templates leave room for a text.
 * @throws ConfigurationError
 */
export async function openServedModel(
  manifest: ModelManifest,
  tokenizer: TextTokenizer,
  identity: string,
): Promise<ServedModel> {
  const source = { manifest, tokenizer };
  for (const head of manifest.heads) await checkRoom(source, head);
  await checkTemplate(source);
  const { documentSkipTokens, querySkipTokens } = manifest.tokenRows;
  return {
    ...source,
    identity,
    documentSkipIds: tokenizer.idsOf(documentSkipTokens),
    querySkipIds: tokenizer.idsOf(querySkipTokens),
    queryTermWeights: await queryTermWeightsOf(manifest),
  };
}
