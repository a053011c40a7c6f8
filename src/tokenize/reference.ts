/** Owns the reference tokenizers library as a Node addon, which encodes on threads of its own. */
import { join } from 'node:path';
import type * as Addon from '@anush008/tokenizers';
import { tokenizerFileName } from './library.ts';
import type { TokenLibrary } from './library.ts';

/** The part of the addon that is used. */
export type TokenizersAddon = Pick<typeof Addon, 'Tokenizer'>;

/** The addon has no build for this platform, or its file cannot be loaded. */
export class TokenizersAddonUnavailable extends Error {
  override readonly name = 'TokenizersAddonUnavailable';
}

const importAddon = (): Promise<TokenizersAddon> => import('@anush008/tokenizers');

async function loadAddon(load: () => Promise<TokenizersAddon>): Promise<TokenizersAddon> {
  try {
    return await load();
  } catch (cause) {
    const reason = cause instanceof Error ? (cause.message.split('\n', 1)[0] ?? '') : String(cause);
    throw new TokenizersAddonUnavailable(reason, { cause });
  }
}

/**
 * The model's tokenizer in the reference library, without the padding and truncation that its file may carry.
 * @throws TokenizersAddonUnavailable where the addon cannot be loaded
 */
export async function openReferenceLibrary(
  modelFolder: string,
  load: () => Promise<TokenizersAddon> = importAddon,
): Promise<TokenLibrary> {
  const { Tokenizer } = await loadAddon(load);
  const tokenizer = Tokenizer.fromFile(join(modelFolder, tokenizerFileName));
  tokenizer.disablePadding();
  tokenizer.disableTruncation();
  return {
    implementation: 'tokenizers',
    async encodeBatch(texts) {
      const encodings = await tokenizer.encodeBatch([...texts], { addSpecialTokens: false });
      return encodings.map((encoding) => encoding.getIds());
    },
    async encodeWithSpecialTokens(text, pair) {
      const encoding = await tokenizer.encode(text, pair, { addSpecialTokens: true });
      return { ids: encoding.getIds(), typeIds: encoding.getTypeIds() };
    },
    idOf: (tokenText) => tokenizer.tokenToId(tokenText),
  };
}
