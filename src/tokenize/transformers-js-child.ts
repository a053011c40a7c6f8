/** Owns the process that runs the tokenizer of transformers.js; imports nothing else but the reading of its files. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as tokenizersJs from '@huggingface/tokenizers';
import { tokenizerFileName } from './library.ts';
import { withSettings } from './normalizer.ts';
import type { NormalizedDefinition } from './normalizer.ts';
import { readTokenizerSettings } from './settings.ts';
import type { TypedEncoding } from './library.ts';

/** The part of the library that is used, as it behaves: its own type files do not resolve under NodeNext. */
interface Tokenizer {
  encode(
    text: string,
    options: { text_pair?: string | null; add_special_tokens: boolean; return_token_type_ids?: boolean },
  ): { readonly ids: number[]; readonly token_type_ids?: number[] };
  decode(ids: readonly number[], options: { skip_special_tokens: boolean }): string;
  get_vocab(withAddedTokens: boolean): Map<string, number>;
}

const library = tokenizersJs as unknown as {
  readonly Tokenizer: new (definition: object, config: object) => Tokenizer;
};

/** Serving process to tokenizer process. */
export type TokenizerRequest =
  | { readonly type: 'batch'; readonly callId: number; readonly texts: readonly string[] }
  | { readonly type: 'typed'; readonly callId: number; readonly text: string; readonly pair: string | null }
  | {
      readonly type: 'decode';
      readonly callId: number;
      readonly ids: readonly (readonly number[])[];
      readonly skipsSpecialTokens: boolean;
    };

/** Tokenizer process to serving process. */
export type TokenizerReply =
  | { readonly type: 'ready'; readonly vocabulary: ReadonlyMap<string, number> }
  | { readonly type: 'openFailed'; readonly reason: string }
  | { readonly type: 'batch'; readonly callId: number; readonly batch: readonly Int32Array[] }
  | { readonly type: 'typed'; readonly callId: number; readonly encoding: TypedEncoding }
  | { readonly type: 'decode'; readonly callId: number; readonly texts: readonly string[] }
  | { readonly type: 'failed'; readonly callId: number; readonly reason: string };

const reply = (message: TokenizerReply): void => {
  process.send?.(message);
};

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function readJson(path: string): Promise<object> {
  return JSON.parse(await readFile(path, 'utf8')) as object;
}

interface PostProcessor {
  readonly type: string;
  readonly processors?: readonly PostProcessor[];
}

interface Definition extends NormalizedDefinition {
  readonly post_processor?: PostProcessor | null;
}

interface OpenedTokenizer {
  readonly tokenizer: Tokenizer;
  /** RoBERTa's post-processor knows one segment only, where this library counts two. */
  readonly hasOneSegment: boolean;
}

const isRoberta = (processor: PostProcessor): boolean =>
  processor.type === 'RobertaProcessing' || (processor.processors ?? []).some(isRoberta);

async function openTokenizer(folder: string): Promise<OpenedTokenizer> {
  const stated = (await readJson(join(folder, tokenizerFileName))) as Definition;
  const definition = withSettings(stated, await readTokenizerSettings(folder));
  const config = await readJson(join(folder, 'tokenizer_config.json')).catch(() => ({}));
  const { post_processor: postProcessor } = definition;
  return {
    tokenizer: new library.Tokenizer(definition, config),
    hasOneSegment: postProcessor !== undefined && postProcessor !== null && isRoberta(postProcessor),
  };
}

const idsOf = (tokenizer: Tokenizer, text: string): number[] =>
  tokenizer.encode(text, { add_special_tokens: false }).ids;

/** The library's assembly, put right where it differs from the reference: see `hasOneSegment`, and no template. */
function typedEncoding(
  { tokenizer, hasOneSegment }: OpenedTokenizer,
  text: string,
  pair: string | null,
): TypedEncoding {
  const options = { text_pair: pair, add_special_tokens: true, return_token_type_ids: true };
  const { ids, token_type_ids: typeIds } = tokenizer.encode(text, options);
  if (typeIds !== undefined) return { ids, typeIds: hasOneSegment ? ids.map(() => 0) : typeIds };
  // Without a template it gives no segments, and may lose the second text.
  const first = idsOf(tokenizer, text);
  const second = pair === null ? [] : idsOf(tokenizer, pair);
  return { ids: [...first, ...second], typeIds: [...first.map(() => 0), ...second.map(() => 1)] };
}

function answer(opened: OpenedTokenizer, request: TokenizerRequest): TokenizerReply {
  const { callId } = request;
  if (request.type === 'typed') {
    return { type: 'typed', callId, encoding: typedEncoding(opened, request.text, request.pair) };
  }
  if (request.type === 'decode') {
    const options = { skip_special_tokens: request.skipsSpecialTokens };
    // An empty list is refused by the library.
    const texts = request.ids.map((ids) => (ids.length === 0 ? '' : opened.tokenizer.decode(ids, options)));
    return { type: 'decode', callId, texts };
  }
  return { type: 'batch', callId, batch: request.texts.map((text) => new Int32Array(idsOf(opened.tokenizer, text))) };
}

// Without its parent this process has no use; a call in progress ends first.
process.on('disconnect', () => process.exit(0));
// Ctrl-C reaches the whole group, but the parent still drains; its end is this process's end.
process.on('SIGINT', () => undefined);

try {
  const opened = await openTokenizer(process.argv[2] ?? '');
  process.on('message', (request: TokenizerRequest) => {
    try {
      reply(answer(opened, request));
    } catch (error) {
      reply({ type: 'failed', callId: request.callId, reason: reasonOf(error) });
    }
  });
  reply({ type: 'ready', vocabulary: opened.tokenizer.get_vocab(true) });
} catch (error) {
  reply({ type: 'openFailed', reason: reasonOf(error) });
}
