/** Owns inputs that are ids already: cut like texts, with the prompt of their kind as tokens before them. */
import { encodeBounded } from './bounded-encode.ts';
import type { EncodeContext } from './bounded-encode.ts';
import type { TextOrIds } from './tokenizer.ts';
import type { CountedIds } from './truncate.ts';

/** Most tokens of a prompt, which the operator's files state. @unit tokens */
const maxPromptTokens = 65_536;

/** Whether nothing is ids. */
export const areTexts = (inputs: readonly TextOrIds[]): inputs is readonly string[] =>
  inputs.every((input) => typeof input === 'string');

/**
 * The ids of a prompt that goes before ids. White space at its end is left out: tokenizers that count it give it to
 * the word behind it, whose token is there already.
 */
export async function encodePrompt(context: EncodeContext, prompt: string): Promise<Int32Array> {
  const text = prompt.trimEnd();
  if (text === '') return new Int32Array();
  const [encoded] = await encodeBounded({ ...context, keptSide: 'start' }, [text], maxPromptTokens);
  return encoded?.ids ?? new Int32Array();
}

/** The prompt and the ids as one, cut to `maxIds`. */
function cutGiven({ keptSide }: EncodeContext, prompt: Int32Array, ids: readonly number[], maxIds: number): CountedIds {
  const totalTokens = prompt.length + ids.length;
  const kept = new Int32Array(Math.min(totalTokens, maxIds));
  const first = keptSide === 'end' ? totalTokens - kept.length : 0;
  for (let index = 0; index < kept.length; index++) {
    const place = first + index;
    kept[index] = (place < prompt.length ? prompt[place] : ids[place - prompt.length]) ?? 0;
  }
  return { ids: kept, totalTokens, isTotalMinimum: false };
}

/**
 * As `encodeBounded`, where some inputs are ids.
 * @throws as `encodeBounded`
 */
export async function encodeMixed(
  context: EncodeContext,
  inputs: readonly TextOrIds[],
  prompt: Int32Array,
  maxIds: number,
): Promise<CountedIds[]> {
  const texts = inputs.filter((input) => typeof input === 'string');
  const encoded = (await encodeBounded(context, texts, maxIds)).values();
  const results: CountedIds[] = [];
  for (const input of inputs) {
    const text = typeof input === 'string' ? encoded.next().value : cutGiven(context, prompt, input, maxIds);
    if (text !== undefined) results.push(text);
  }
  return results;
}
