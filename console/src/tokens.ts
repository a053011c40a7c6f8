/** Owns the words behind ids and rows: asked of the server, with numbers where it does not tell. */
import type { Api } from './api.ts';
import type { Info } from './info.ts';

/** Whose words the server tells: its first model's; null where those are the words of the model that was asked. */
export function wordsHint(info: Info, modelId: string): string | null {
  const teller = Object.values(info['x-trivec'].models).flat()[0]?.id;
  return teller === undefined || teller === modelId ? null : `Words by the tokenizer of ${teller}.`;
}

/** The text of each id; null where the server has no such route, or knows an id not. */
export async function wordsOf(api: Api, ids: readonly number[]): Promise<string[] | null> {
  if (ids.length === 0) return [];
  try {
    const body = JSON.stringify({ ids: ids.map((id) => [id]), skip_special_tokens: false });
    const words: unknown = JSON.parse(await api.post('decode', body));
    return Array.isArray(words) && words.length === ids.length ? words.map(String) : null;
  } catch {
    return null;
  }
}

/** The texts of the tokens of each text; null where the server has no such route. */
export async function tokenTextsOf(api: Api, texts: readonly string[]): Promise<string[][] | null> {
  try {
    const body = JSON.stringify({ inputs: texts, add_special_tokens: true });
    const lists: unknown = JSON.parse(await api.post('tokenize', body));
    if (!Array.isArray(lists) || lists.length !== texts.length) return null;
    return lists.map((list) =>
      Array.isArray(list) ? list.map((token: { text?: unknown }) => String(token.text)) : [],
    );
  } catch {
    return null;
  }
}
