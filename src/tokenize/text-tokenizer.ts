/** Owns the tokenizer of one model: its library, its templates and its limit, put together. */
import { encodeBounded } from './bounded-encode.ts';
import { detailsOf } from './details.ts';
import { tokenizeFilled } from './filled-template.ts';
import { markerTokens, plainForm, shapeIds } from './form.ts';
import type { ShapedIds, TextForm } from './form.ts';
import { areTexts, encodeMixed, encodePrompt } from './given-ids.ts';
import type { TokenLibrary } from './library.ts';
import type { TokenizerSettings } from './settings.ts';
import { assemblePair, assembleSingle, pairSpecialTokens, singleSpecialTokens, withoutTypeIds } from './template.ts';
import type { SingleTemplate, Templates } from './template.ts';
import type { PassageCut, TextTokenizer, TokenizedText } from './tokenizer.ts';
import { maxPassageTokens, maxQueryTokens, maxTextTokens } from './truncate.ts';
import type { CountedIds } from './truncate.ts';
import type { Turns } from './turns.ts';

/** What a tokenizer is made of. */
export interface TokenizerParts {
  readonly library: TokenLibrary;
  readonly templates: Templates;
  /** The model's limit, special tokens included. */
  readonly maxTokens: number;
  readonly turns: Turns;
  readonly settings: TokenizerSettings;
}

function tokenizedText(shaped: ShapedIds, cut: CountedIds, otherTokens: number): TokenizedText {
  return {
    ...shaped,
    isTruncated: cut.totalTokens > cut.ids.length,
    totalTokens: cut.totalTokens + otherTokens,
    isTotalMinimum: cut.isTotalMinimum,
  };
}

/**
 * Tokens of a prompt at the start of a text: those of the prompt as a text of its own, without a last special one.
 * @source sentence-transformers, `_get_prompt_length`
 */
function promptTokensOf(template: SingleTemplate, prompt: CountedIds): number {
  const { ids } = assembleSingle(template, prompt.ids);
  return template.suffix.ids.length === 0 ? ids.length : ids.length - 1;
}

/** Of so many tokens at the start of a text those that are left where the caller has its end kept. */
function leftOfPrompt(promptTokens: number, text: TokenizedText, { keptSide }: TextForm): number {
  if (keptSide !== 'end' || !text.isTruncated) return Math.min(promptTokens, text.ids.length);
  return text.isTotalMinimum ? 0 : Math.max(0, promptTokens - (text.totalTokens - text.ids.length));
}

/** Cut where the model's limit asks for it, at the end that the model cuts. */
const wholePassage: PassageCut = { keptSide: null, maxTokens: null };

const bareTemplate: SingleTemplate = {
  prefix: { ids: [], typeIds: [] },
  textTypeId: 0,
  suffix: { ids: [], typeIds: [] },
};

/** The least number that every id of an ordinary token is below: special ones behind them are left out. */
function ordinaryIdEnd({ tokenCount }: TokenLibrary, { specialIds }: TokenizerSettings): number {
  let end = tokenCount;
  while (end > 0 && specialIds.has(end - 1)) end--;
  return end;
}

/** A tokenizer that keeps nothing between calls. */
export function createTextTokenizer(parts: TokenizerParts): TextTokenizer {
  const { library, maxTokens, turns, settings } = parts;
  const { keptSide, hasTypeIds } = settings;
  const templates = hasTypeIds ? parts.templates : withoutTypeIds(parts.templates);
  const { pair } = templates;
  return {
    implementation: library.implementation,
    ordinaryIdEnd: ordinaryIdEnd(library, settings),
    idEnd: library.tokenCount,
    specialTokens: singleSpecialTokens(templates.single),
    async tokenize(texts, signal, form = plainForm) {
      const context = { library, turns, signal, keptSide: form.keptSide ?? keptSide };
      const limit = form.maxTokens ?? maxTokens;
      const single = form.hasSpecialTokens ? templates.single : bareTemplate;
      const room = Math.max(0, maxTextTokens(limit - markerTokens(form), single));
      const isPromptCounted = form.countedPrompt !== '';
      const idPrompt = areTexts(texts) ? null : await encodePrompt(context, form.idPrompt);
      const [counted, [prompt]] = await Promise.all([
        areTexts(texts)
          ? encodeBounded(context, texts, room)
          : encodeMixed(context, texts, idPrompt ?? new Int32Array(), room),
        encodeBounded(context, isPromptCounted ? [form.countedPrompt] : [], room),
      ]);
      const otherTokens = singleSpecialTokens(single) + markerTokens(form);
      const tokenized = counted.map((text) =>
        tokenizedText(shapeIds(assembleSingle(single, text.ids), form, limit), text, otherTokens),
      );
      if (!isPromptCounted) return tokenized;
      const promptTokens = prompt === undefined ? 0 : promptTokensOf(single, prompt);
      const idPromptTokens = single.prefix.ids.length + (idPrompt?.length ?? 0);
      return tokenized.map((text, index) => {
        const tokens = typeof texts[index] === 'string' ? promptTokens : idPromptTokens;
        return { ...text, promptTokens: leftOfPrompt(tokens, text, form) };
      });
    },
    async tokenizePairs(query, passages, signal, template, cut = wholePassage) {
      const context = { library, turns, signal, keptSide: cut.keptSide ?? keptSide };
      if (template !== undefined) {
        const limits = { maxTokens, maxPassageTokens: cut.maxTokens };
        // What is filled in is cut at its end unless the caller says otherwise, whatever the model does with plain texts.
        return tokenizeFilled({ ...context, keptSide: cut.keptSide ?? 'start' }, template, limits, query, passages);
      }
      const [first] = await encodeBounded(context, [query], Math.max(0, maxQueryTokens(maxTokens, pair)));
      if (first === undefined) return [];
      const room = maxPassageTokens(maxTokens, pair, first);
      const counted = await encodeBounded(context, passages, Math.min(room, cut.maxTokens ?? room));
      const otherTokens = pairSpecialTokens(pair) + first.totalTokens;
      return counted.map((passage) => tokenizedText(assemblePair(pair, first.ids, passage.ids), passage, otherTokens));
    },
    detailsOf: (text, hasSpecialTokens) =>
      detailsOf(library, text.toWellFormed(), hasSpecialTokens ? templates.single : null),
    decode: (ids, skipsSpecialTokens) => library.decodeBatch(ids, skipsSpecialTokens),
    idsOf: (texts) => new Set(texts.map((text) => library.idOf(text)).filter((id) => id !== null)),
  };
}
