/** Owns sentences that hold texts of others: none of these changes how the words around it are read. */
import { element } from './element.ts';
import { withoutTurns } from './turns.ts';

/** Words of the page, and texts from elsewhere between them. */
export type Sentence = readonly (string | { readonly text: string })[];

/** A text from elsewhere, read in its own direction, which ends with it. */
export const isolated = (text: string): HTMLElement => element('bdi', {}, text);

/** A sentence as an element holds it. */
export const shownSentence = (sentence: Sentence): (Node | string)[] =>
  sentence.map((part) => (typeof part === 'string' ? part : isolated(part.text)));

/** A sentence as an attribute holds it, where nothing can be set apart. */
export const plainSentence = (sentence: Sentence): string =>
  sentence.map((part) => (typeof part === 'string' ? part : withoutTurns(part.text))).join('');
