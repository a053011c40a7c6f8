/** Owns the tokenizer of transformers.js as a library, in a process that is started again should it end. */
import type { TokenLibrary } from './library.ts';
import { startTokenizerProcess } from './transformers-js-process.ts';
import type { TokenizerProcess } from './transformers-js-process.ts';

/** The model's tokenizer as transformers.js reads it: for platforms without the reference library. */
export async function openTransformersJsLibrary(
  modelFolder: string,
  start: (modelFolder: string) => Promise<TokenizerProcess> = startTokenizerProcess,
): Promise<TokenLibrary> {
  let current = await start(modelFolder);
  let restart: Promise<TokenizerProcess> | null = null;
  const { vocabulary } = current;
  let tokens: ReadonlyMap<number, string> | null = null;

  async function liveProcess(): Promise<TokenizerProcess> {
    if (current.isAlive()) return current;
    restart ??= start(modelFolder).finally(() => {
      restart = null;
    });
    current = await restart;
    return current;
  }

  return {
    implementation: 'transformers.js',
    encodeBatch: async (texts) => (await liveProcess()).encodeBatch(texts),
    encodeWithSpecialTokens: async (text, pair) => (await liveProcess()).encodeWithSpecialTokens(text, pair),
    async encodeWithPlaces(text) {
      const [ids = new Int32Array()] = await (await liveProcess()).encodeBatch([text]);
      return { ids: [...ids], places: null };
    },
    decodeBatch: async (ids, skipsSpecialTokens) => (await liveProcess()).decodeBatch(ids, skipsSpecialTokens),
    tokenCount: [...vocabulary.values()].reduce((most, id) => Math.max(most, id + 1), 0),
    idOf: (tokenText) => vocabulary.get(tokenText) ?? null,
    tokenOf(id) {
      tokens ??= new Map([...vocabulary].map(([token, its]) => [its, token]));
      return tokens.get(id) ?? null;
    },
  };
}
