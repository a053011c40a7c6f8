/** Owns the reference tokenizers library as a Node addon, which encodes on threads of its own. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type * as Addon from '@anush008/tokenizers';
import { ConfigurationError } from '../errors.ts';
import { withSettings, type NormalizedDefinition } from './normalizer.ts';
import { tokenizerFileName } from './library.ts';
import type { TokenLibrary } from './library.ts';
import { readTokenizerSettings } from './settings.ts';

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

const withoutSpecial: Addon.EncodeOptions = { addSpecialTokens: false };

/** What the addon writes before its reason, without a space between. */
const addonPrefix = /^Error loading from file/u;

/**
 * The definition in a file, opened; where settings beside it contradict it, they win, as they do in the reference.
 * @throws ConfigurationError that names the file
 */
async function openDefinition(Tokenizer: TokenizersAddon['Tokenizer'], folder: string): Promise<Addon.Tokenizer> {
  const path = join(folder, tokenizerFileName);
  const isThere = await stat(path).then(
    (entry) => entry.isFile(),
    () => false,
  );
  if (!isThere) throw new ConfigurationError([`${path}: is missing`]);
  const settings = await readTokenizerSettings(folder);
  try {
    // A large definition is not worth reading twice where nothing in it can be asked to change.
    if (settings.bert === null && !settings.lowercasesTexts) return Tokenizer.fromFile(path);
    const text = await readFile(path, 'utf8');
    const definition = JSON.parse(text) as NormalizedDefinition;
    const changed = withSettings(definition, settings);
    return Tokenizer.fromString(changed === definition ? text : JSON.stringify(changed));
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(addonPrefix, '') : String(error);
    throw new ConfigurationError([`${path}: defines no tokenizer: ${reason}`]);
  }
}

/**
 * The model's tokenizer in the reference library, without the padding and truncation that its file may carry.
 * @throws TokenizersAddonUnavailable where the addon cannot be loaded; ConfigurationError
 */
export async function openReferenceLibrary(
  modelFolder: string,
  load: () => Promise<TokenizersAddon> = importAddon,
): Promise<TokenLibrary> {
  const { Tokenizer } = await loadAddon(load);
  const tokenizer = await openDefinition(Tokenizer, modelFolder);
  tokenizer.disablePadding();
  tokenizer.disableTruncation();
  return {
    implementation: 'tokenizers',
    async encodeBatch(texts) {
      const [only, ...others] = texts;
      // A batch of one costs a second hop between threads.
      if (only !== undefined && others.length === 0)
        return [(await tokenizer.encode(only, null, withoutSpecial)).getIds()];
      const encodings = await tokenizer.encodeBatch([...texts], withoutSpecial);
      return encodings.map((encoding) => encoding.getIds());
    },
    async encodeWithSpecialTokens(text, pair) {
      const encoding = await tokenizer.encode(text, pair, { addSpecialTokens: true });
      return { ids: encoding.getIds(), typeIds: encoding.getTypeIds() };
    },
    async encodeWithPlaces(text) {
      const encoding = await tokenizer.encode(text, null, withoutSpecial);
      return { ids: encoding.getIds(), places: encoding.getOffsets() };
    },
    decodeBatch: (ids, skipsSpecialTokens) =>
      tokenizer.decodeBatch(
        ids.map((list) => [...list]),
        skipsSpecialTokens,
      ),
    tokenCount: tokenizer.getVocabSize(true),
    idOf: (tokenText) => tokenizer.tokenToId(tokenText),
    tokenOf: (id) => tokenizer.idToToken(id),
  };
}
