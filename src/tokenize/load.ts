/** Owns the choice of the library that reads a model's tokenizer, and the start of it. */
import { ConfigurationError } from '../errors.ts';
import { coalesce } from './coalesce.ts';
import type { TokenLibrary } from './library.ts';
import { openWordPieces, withOrdinaryTexts } from './ordinary-texts.ts';
import { probeTemplates } from './probe-templates.ts';
import { openReferenceLibrary, TokenizersAddonUnavailable } from './reference.ts';
import { readTokenizerSettings } from './settings.ts';
import { createTextTokenizer } from './text-tokenizer.ts';
import type { TextTokenizer } from './tokenizer.ts';
import { openTransformersJsLibrary } from './transformers-js.ts';
import { maxTextTokens } from './truncate.ts';
import { createTurns } from './turns.ts';

/** Most calls that wait to tokenise a very long text; the next one is answered `overloaded`. */
const maxWaitingLargeTexts = 256;

/** One line for all models: what very long texts cost is the memory of the process. */
const largeTextTurns = createTurns(maxWaitingLargeTexts);

/** Opens a model's tokenizer in one library. */
export type OpenLibrary = (modelFolder: string) => Promise<TokenLibrary>;

/** What a tokenizer is loaded from. */
export interface TokenizerSource {
  /** Folder with `tokenizer.json`. */
  readonly modelFolder: string;
  /** The model's limit, special tokens included. */
  readonly maxTokens: number;
  /** Told, once, where the reference library does not exist for this platform. */
  readonly warn: (message: string) => void;
  readonly openReference?: OpenLibrary;
  readonly openFallback?: OpenLibrary;
}

async function openLibrary(source: TokenizerSource): Promise<TokenLibrary> {
  const { modelFolder, openReference = openReferenceLibrary, openFallback = openTransformersJsLibrary } = source;
  try {
    return await openReference(modelFolder);
  } catch (error) {
    if (!(error instanceof TokenizersAddonUnavailable)) throw error;
    source.warn(
      `the tokenizers addon cannot be loaded here (${error.message}): the tokenizer of transformers.js takes its place, ` +
        'whose ids differ from the reference for some rare characters',
    );
    return openFallback(modelFolder);
  }
}

/**
 * The tokenizer of the model in a folder, its templates derived and checked.
 * @throws ConfigurationError where its files cannot be read or leave no room for a text
 */
export async function loadTokenizer(source: TokenizerSource): Promise<TextTokenizer> {
  try {
    const settings = await readTokenizerSettings(source.modelFolder);
    const shared = coalesce(await openLibrary(source));
    const encodeOrdinary = await openWordPieces(source.modelFolder, settings);
    const library = encodeOrdinary === null ? shared : withOrdinaryTexts(shared, encodeOrdinary);
    const templates = await probeTemplates(library);
    if (maxTextTokens(source.maxTokens, templates.single) < 1) {
      throw new ConfigurationError([`a limit of ${String(source.maxTokens)} tokens leaves no room for a text`]);
    }
    const { maxTokens } = source;
    return createTextTokenizer({ library, templates, maxTokens, turns: largeTextTurns, settings });
  } catch (error) {
    if (
      error instanceof ConfigurationError &&
      error.problems.every((problem) => problem.startsWith(source.modelFolder))
    )
      throw error;
    const problem = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError([`${source.modelFolder}: the tokenizer cannot be used: ${problem}`]);
  }
}
