/** Owns the words behind ids and rows: asked of the server by the model whose they are, never guessed. */
import type { Api } from './api.ts';
import type { Token } from './row-tokens.ts';

/** What is asked of a model, and how it is asked. */
export interface Teller {
  readonly api: Api;
  readonly modelId: string;
  /** Most lists of a call. */
  readonly batchLimit: number;
  readonly stop: AbortSignal;
}

/** The list that a path answers for a list, piece by piece; null where the server has no such route or refuses. */
async function listOf<T>(
  { api, modelId, batchLimit, stop }: Teller,
  path: string,
  given: readonly T[],
  bodyOf: (piece: readonly T[]) => object,
): Promise<unknown[] | null> {
  const told: unknown[] = [];
  try {
    for (let start = 0; start < given.length; start += batchLimit) {
      const piece = given.slice(start, start + batchLimit);
      const body = JSON.stringify({ ...bodyOf(piece), 'x-trivec': { model: modelId } });
      const answer: unknown = JSON.parse(await api.post(path, body, stop));
      if (!Array.isArray(answer) || answer.length !== piece.length) return null;
      told.push(...(answer as unknown[]));
    }
    return told;
  } catch (error) {
    if (stop.aborted) throw error;
    return null;
  }
}

/**
 * The text of each id; null where the server does not tell.
 * @throws CallFailure where it was stopped
 */
export async function wordsOf(teller: Teller, ids: readonly number[]): Promise<string[] | null> {
  const bodyOf = (piece: readonly number[]) => ({ ids: piece.map((id) => [id]), skip_special_tokens: false });
  return (await listOf(teller, 'decode', ids, bodyOf))?.map(String) ?? null;
}

/**
 * The tokens of each text, special ones included; null where the server does not tell.
 * @throws CallFailure where it was stopped
 */
export async function tokensOf(teller: Teller, texts: readonly string[]): Promise<Token[][] | null> {
  const bodyOf = (piece: readonly string[]) => ({ inputs: piece, add_special_tokens: true });
  const lists = await listOf(teller, 'tokenize', texts, bodyOf);
  return lists as Token[][] | null;
}
