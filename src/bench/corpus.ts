/** Owns the texts that a benchmark sends: those of a file, or of the bundled collection. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ConfigurationError } from '../errors.ts';

const bundled = (name: string): string => fileURLToPath(new URL(`../../corpus/${name}`, import.meta.url));

/** Files of the collection that comes with the package: documents and questions of natural length. */
export const bundledTexts = {
  documents: bundled('cranfield.docs.jsonl'),
  queries: bundled('cranfield.queries.jsonl'),
};

/** The text of a line: its `text` where the line is a JSON object with one, else the line itself. */
function textOf(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const { text } = JSON.parse(line) as { readonly text?: unknown };
    return typeof text === 'string' ? text : line;
  } catch {
    return line;
  }
}

/**
 * The texts of a file, one a line, plain or as JSON objects with a `text`; empty ones are left out, since not every
 * server takes them.
 * @throws ConfigurationError
 */
export function readTexts(path: string): string[] {
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError([`${path} cannot be read: ${(error as Error).message}`]);
  }
  const texts = content.split('\n').map((line) => textOf(line.trim()).trim());
  const present = texts.filter((text) => text !== '');
  if (present.length === 0) throw new ConfigurationError([`${path} holds no text`]);
  return present;
}

/** `count` of the items, evenly spaced over all of them; all where there are no more. */
export function spread<Item>(items: readonly Item[], count: number): Item[] {
  if (count >= items.length) return [...items];
  return Array.from({ length: count }, (_, index) => items[Math.floor((index * items.length) / count)] as Item);
}

/** The first words of a text. */
export const cutToWords = (text: string, maxWords: number): string => text.split(/\s+/u).slice(0, maxWords).join(' ');
