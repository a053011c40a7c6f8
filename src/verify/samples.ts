/** Owns the sample texts in the form in which a model's heads take them. */
import type { RunItem } from '../executor/protocol.ts';
import type { GraphHead } from '../model/head-source.ts';
import type { ModelManifest } from '../model/manifest.ts';
import { toRunItem } from '../task/run-texts.ts';
import { openServedModel } from '../task/served-model.ts';
import { rowChoiceOf, textFormOf } from '../task/text-form.ts';
import { fillTemplate } from '../tokenize/filled-template.ts';
import { withPrompt } from '../tokenize/prompts.ts';
import type { TextTokenizer, TokenizedText } from '../tokenize/tokenizer.ts';

/** One text, or a query and a passage, ready to run. */
export interface Sample {
  /** With its prompt, as it is tokenised. */
  readonly text: string;
  /** The passage that goes with it; null where there is none. */
  readonly pair: string | null;
  /** False: the text is a filled template, which gets no special tokens. */
  readonly hasSpecialTokens: boolean;
  /** Without the marker that multi-vectors want. */
  readonly tokenized: TokenizedText;
  readonly item: RunItem;
}

async function pairSamples(
  { prompts, yesNo }: ModelManifest,
  tokenizer: TextTokenizer,
  [query = '', ...passages]: readonly string[],
): Promise<Sample[]> {
  // The template of a generative reranker takes the place of prompts.
  const text = yesNo === null ? withPrompt(query, 'query', prompts) : query;
  const pairs = yesNo === null ? passages.map((passage) => withPrompt(passage, 'document', prompts)) : passages;
  const tokenized = await tokenizer.tokenizePairs(text, pairs, undefined, yesNo ?? undefined);
  return tokenized.map((one, index) => {
    const pair = pairs[index] ?? '';
    const whole = yesNo === null ? { text, pair } : { text: fillTemplate(yesNo, text, pair), pair: null };
    return { ...whole, hasSpecialTokens: yesNo === null, tokenized: one, item: toRunItem(one, null) };
  });
}

/** The texts as documents for a head, those left out that the model's limit cuts. A reranker's first text is the query. */
export async function samplesOf(
  manifest: ModelManifest,
  tokenizer: TextTokenizer,
  head: GraphHead,
  texts: readonly string[],
): Promise<Sample[]> {
  const isWhole = ({ tokenized }: Sample): boolean => !tokenized.isTruncated;
  if (head === 'logit') return (await pairSamples(manifest, tokenizer, texts)).filter(isWhole);
  const served = await openServedModel(manifest, tokenizer, manifest.modelId);
  const form = textFormOf(served, head, 'document');
  const choice = rowChoiceOf(served, head, 'document');
  const prompted = texts.map((text) => withPrompt(text, 'document', manifest.prompts));
  const shaped = await tokenizer.tokenize(prompted, undefined, form);
  const plain = await tokenizer.tokenize(prompted, undefined, { ...form, markerId: null });
  return prompted
    .flatMap((text, index) => {
      const [tokenized, marked] = [plain[index], shaped[index]];
      if (tokenized === undefined || marked === undefined || marked.isTruncated) return [];
      return [{ text, pair: null, hasSpecialTokens: true, tokenized, item: toRunItem(marked, choice) }];
    })
    .filter(isWhole);
}
