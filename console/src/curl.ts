/** Owns the curl command that does what a panel does. */

/** A call as the page makes it. */
export interface CurlCall {
  readonly url: string;
  /** The JSON text that is sent; null for a GET. */
  readonly body: string | null;
  /** Whether a key goes with it: the command names a variable, never the key. */
  readonly hasKey: boolean;
}

/** One word of a POSIX shell, whatever it holds. */
export const shellQuote = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** A command for a POSIX shell; with a key it reads `TRIVEC_API_KEY` of the shell's environment. */
export function curlOf({ url, body, hasKey }: CurlCall): string {
  const isPlain = /^[\w:/.[\]-]+$/.test(url) && !url.includes('[');
  const parts = ['curl -s', isPlain ? url : shellQuote(url)];
  if (hasKey) parts.push('-H "Authorization: Bearer $TRIVEC_API_KEY"');
  if (body !== null) parts.push(`-H 'Content-Type: application/json' -d ${shellQuote(body)}`);
  return parts.join(' ');
}
