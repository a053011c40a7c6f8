/** Owns the raw text of a list's elements, for what an answer gives back exactly as it was sent. */

/** What a value is made of beside white space, numbers and words. */
const structure = /["{}[\],]/g;
/** What ends a string, or takes the meaning of the character behind it away. */
const stringEnd = /["\\]/g;
const space = /[ \t\r\n]*/y;

/** Where the expression next matches from `from` on; the end of the text where it does not. */
function placeOf(expression: RegExp, text: string, from: number): number {
  expression.lastIndex = from;
  return expression.exec(text)?.index ?? text.length;
}

function skipSpace(text: string, from: number): number {
  space.lastIndex = from;
  space.test(text);
  return space.lastIndex;
}

/** The place behind a string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let place = placeOf(stringEnd, text, start + 1);
  while (text[place] === '\\') place = placeOf(stringEnd, text, place + 2);
  return place + 1;
}

/** The place of the comma or bracket behind a value. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let place = placeOf(structure, text, start); place < text.length; place = placeOf(structure, text, place)) {
    const character = text[place];
    if (character === '"') {
      place = endOfString(text, place);
      continue;
    }
    if (depth === 0 && (character === ',' || character === '}' || character === ']')) return place;
    if (character === '{' || character === '[') depth += 1;
    else if (character !== ',') depth -= 1;
    place += 1;
  }
  return text.length;
}

/** A value in an object or a list. */
interface PlacedValue {
  /** Raw text of its name; empty in a list. */
  readonly key: string;
  readonly start: number;
  /** Behind it and the white space there. */
  readonly end: number;
}

/** The values of the object or list that opens at `start`. */
function* valuesIn(text: string, start: number): Generator<PlacedValue, void> {
  const isObject = text[start] === '{';
  let place = skipSpace(text, start + 1);
  while (place < text.length && text[place] !== '}' && text[place] !== ']') {
    let key = '';
    if (isObject) {
      const end = endOfString(text, place);
      key = text.slice(place, end);
      place = skipSpace(text, text.indexOf(':', end) + 1);
    }
    const end = endOfValue(text, place);
    yield { key, start: place, end };
    place = text[end] === ',' ? skipSpace(text, end + 1) : end;
  }
}

/** A name whose every character is escaped is six times as long; longer ones are not looked at. */
const isName = (key: string, name: string): boolean =>
  key.length <= 6 * name.length + 2 && (JSON.parse(key) as string) === name;

/**
 * The raw text of each element of the list that is the member `name` of an object; the last one where several have the
 * name, as in JSON.parse. One pass without recursion over a text that JSON.parse has taken; of anything else the result
 * means nothing.
 */
export function rawElementsOf(text: string, name: string): string[] {
  const start = skipSpace(text, 0);
  let list: number | null = null;
  for (const member of valuesIn(text, start)) if (isName(member.key, name)) list = member.start;
  if (list === null || text[list] !== '[') return [];
  return Array.from(valuesIn(text, list), (element) => text.slice(element.start, element.end).trimEnd());
}
