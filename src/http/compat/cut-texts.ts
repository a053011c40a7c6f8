/** Owns cutting texts to a number of tokens that the caller asks for, below the limit of the model. */
import { invalidField } from '../../errors.ts';
import { Pace } from '../../rpc/encode.ts';
import type { TaskMethod } from '../../rpc/methods.ts';
import type { ServedFacts, TokenDetail } from '../../rpc/served-facts.ts';
import type { Truncation } from '../../rpc/task-request.ts';

/** What is cut, and how far. */
export interface TokenCut {
  readonly method: TaskMethod;
  /** null: the first model of the method. */
  readonly model: string | null;
  /** Member that held the limit, for errors. */
  readonly limitField: string;
  /** null: only the limit of the model counts. @unit tokens */
  readonly maxTokens: number | null;
  readonly truncation: Truncation;
  /** Member that held the texts, for errors. */
  readonly field: string;
}

/**
 * The texts, each cut at the end of a token so that it has `maxTokens` or fewer, special tokens included, and one at
 * least. Tokens are counted as `served.tokenize` reads them, and only where the limit is below the model's own.
 * @throws invalidParams where a text is longer and may not be cut, or cannot be; overloaded; the signal's reason
 */
export async function cutTexts(
  texts: readonly string[],
  cut: TokenCut,
  served: ServedFacts,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { maxTokens, method, model } = cut;
  const facts = served.models.find((each) => each.methods.includes(method) && (model === null || each.model === model));
  if (maxTokens === null || facts === undefined || maxTokens >= facts.maxInputTokens) return texts;
  // Refused by the task itself: tokenising more than it takes is work for nothing.
  if (texts.length > Math.max(served.limits.batchLimit, served.limits.maxCandidates)) return texts;
  return served.tokenize({ texts, hasSpecialTokens: true, field: cut.field }, signal, async (tokens) => {
    const pace = new Pace();
    const kept: string[] = [];
    for (const [index, text] of texts.entries()) {
      kept.push(cutText(text, tokens[index] ?? [], maxTokens, index, cut));
      // A character is gone through about as fast as a number is written.
      await pace.wrote(text.length);
    }
    return kept;
  });
}

function cutText(
  text: string,
  tokens: readonly TokenDetail[],
  maxTokens: number,
  index: number,
  { truncation, field: list, limitField }: TokenCut,
): string {
  if (tokens.length <= maxTokens) return text;
  const field = `${list}[${index}]`;
  if (truncation === 'refuse') {
    const data = { limit: maxTokens, tokens: tokens.length };
    throw invalidField(field, `has ${tokens.length} tokens, ${limitField} is ${maxTokens}`, data);
  }
  const ordinary = tokens.filter(({ isSpecial }) => !isSpecial);
  const kept = Math.max(1, maxTokens - (tokens.length - ordinary.length));
  if (ordinary.length <= kept) return text;
  const keepsEnd = truncation === 'keepEnd';
  const edge = keepsEnd ? ordinary.at(-kept)?.start : ordinary[kept - 1]?.end;
  // Some tokenizers do not say where in the text a token stands.
  if (typeof edge !== 'number') throw invalidField(limitField, 'texts of this model are cut at its own limit only');
  const characters = Array.from(text);
  return (keepsEnd ? characters.slice(edge) : characters.slice(0, edge)).join('');
}
