/** Owns the tokens of one text as they are shown: each with its place in the text, and the special ones around them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TokenLibrary } from './library.ts';
import type { SingleTemplate, SpecialTokens } from './template.ts';
import type { TokenDetail } from './tokenizer.ts';

/** Tokens that are put together before others have a turn: about a millisecond. */
const maxTurnTokens = 4_096;

type Library = Pick<TokenLibrary, 'encodeWithPlaces' | 'tokenOf'>;

const tokenText = ({ tokenOf }: Library, id: number): string => tokenOf(id) ?? '';

const specialDetails = (library: Library, { ids }: SpecialTokens): TokenDetail[] =>
  ids.map((id) => ({ id, text: tokenText(library, id), isSpecial: true, start: null, end: null }));

/** Places of the characters of a text in its code units, the end included; null where both count alike. */
function placesOfCharacters(text: string): readonly number[] | null {
  let place = 0;
  const places: number[] = [];
  for (const character of text) {
    places.push(place);
    place += character.length;
  }
  return places.length === place ? null : [...places, place];
}

/** All tokens of a well-formed text, between the special tokens of a template; without one, its own only. */
export async function detailsOf(
  library: Library,
  text: string,
  template: SingleTemplate | null,
): Promise<TokenDetail[]> {
  const { ids, places } = await library.encodeWithPlaces(text);
  const units = placesOfCharacters(text);
  const detailAt = (id: number, index: number): TokenDetail => {
    const [start, end] = places?.[index] ?? [];
    if (start === undefined || end === undefined) {
      return { id, text: tokenText(library, id), isSpecial: false, start: null, end: null };
    }
    const slice = units === null ? text.slice(start, end) : text.slice(units[start], units[end]);
    return { id, text: slice, isSpecial: false, start, end };
  };
  const own: TokenDetail[] = [];
  for (const [index, id] of ids.entries()) {
    if (index > 0 && index % maxTurnTokens === 0) await nextTurn();
    own.push(detailAt(id, index));
  }
  if (template === null) return own;
  return [...specialDetails(library, template.prefix), ...own, ...specialDetails(library, template.suffix)];
}
