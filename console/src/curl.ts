/** Owns the curl command that does what a panel does. */
import { withoutTurns } from './turns.ts';

/** A call as the page makes it. */
export interface CurlCall {
  readonly url: string;
  /** The JSON text that is sent, on one line; null for a GET. */
  readonly body: string | null;
  /** Whether a key goes with it: the command names a variable, never the key. */
  readonly hasKey: boolean;
}

/** Longest body that is a word of the command: Linux takes words of up to 128 KiB. @unit bytes */
const maxWordBytes = 100_000;

/** Ends a body that stands below the command; no JSON is this line. */
const bodyEnd = 'END_OF_BODY';

/** One word of a POSIX shell, whatever it holds. */
export const shellQuote = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** A command for a POSIX shell; with a key it reads `TRIVEC_API_KEY` of the shell's environment. */
export function curlOf({ url, body, hasKey }: CurlCall): string {
  const isPlain = /^[\w:/.[\]-]+$/.test(url) && !url.includes('[');
  const parts = ['curl -s', isPlain ? url : shellQuote(url)];
  if (hasKey) parts.push('-H "Authorization: Bearer $TRIVEC_API_KEY"');
  if (body === null) return parts.join(' ');
  parts.push(`-H 'Content-Type: application/json'`);
  // Inside a JSON text such signs stand in strings only, where an escape means the same.
  const text = withoutTurns(body);
  if (new TextEncoder().encode(text).length <= maxWordBytes) return [...parts, `-d ${shellQuote(text)}`].join(' ');
  return `${parts.join(' ')} --data-binary @- <<'${bodyEnd}'\n${text}\n${bodyEnd}`;
}
