/** Owns the form of the file of keys. */
import type { QuotaLimits } from '../rpc/quota.ts';

/** One key, with what its line says about it. */
export interface KeyEntry {
  readonly key: string;
  /** Stands for the key wherever people read; null where it has none. */
  readonly name: string | null;
  /** Bounds that differ from those of all keys. */
  readonly limits: Partial<QuotaLimits>;
}

/** Most keys of one file: each request is compared with all of them. */
export const maxKeys = 1000;
const maxNameLength = 64;

const namePattern = new RegExp(`^[\\w.-]{1,${String(maxNameLength)}}$`);
const keyPattern = /^[\x21-\x39\x3b-\x7e]+$/;
const limitPattern = /^(requestsPerSecond|requestBurst|queuedTokens)=(\d{1,9})$/;

/** The keys of a file, or what is wrong with it; no problem shows a part of a line, since it may be a key. */
export function parseKeyFile(text: string): { entries: KeyEntry[] } | { problems: string[] } {
  const problems: string[] = [];
  const entries: KeyEntry[] = [];
  for (const [index, line] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const words = wordsOf(line);
    if (words.length === 0) continue;
    const parsed = parseWords(words);
    if (typeof parsed === 'string') problems.push(`line ${String(index + 1)}: ${parsed}`);
    else entries.push(parsed);
  }
  if (problems.length > 0) return { problems };
  if (entries.length === 0) return { problems: ['holds no key'] };
  if (entries.length > maxKeys) return { problems: [`holds more than ${String(maxKeys)} keys`] };
  if (hasTwice(entries.map(({ key }) => key))) return { problems: ['holds the same key twice'] };
  if (hasTwice(entries.flatMap(({ name }) => name ?? []))) return { problems: ['holds the same name twice'] };
  return { entries };
}

/** The words of a line up to one that starts a comment. */
function wordsOf(line: string): string[] {
  const words = line.split(/\s+/).filter((word) => word !== '');
  const comment = words.findIndex((word) => word.startsWith('#'));
  return comment === -1 ? words : words.slice(0, comment);
}

function parseWords([first = '', ...rest]: readonly string[]): KeyEntry | string {
  const colon = first.indexOf(':');
  const name = colon === -1 ? null : first.slice(0, colon);
  if (name !== null && !namePattern.test(name)) {
    return `a name before the colon has 1 to ${String(maxNameLength)} letters, digits, and . _ -`;
  }
  const key = first.slice(colon + 1);
  if (!keyPattern.test(key)) return 'a key has visible ASCII characters and no colon';
  const limits: Partial<Record<keyof QuotaLimits, number>> = {};
  for (const word of rest) {
    const [, limit, value] = limitPattern.exec(word) ?? [];
    if (limit === undefined) return 'after the key stand requestsPerSecond=N, requestBurst=N and queuedTokens=N only';
    limits[limit as keyof QuotaLimits] = Number(value);
  }
  return { key, name, limits };
}

const hasTwice = (texts: readonly string[]) => new Set(texts).size < texts.length;
