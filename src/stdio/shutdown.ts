/** Owns recognising a frame that may end the session before that frame has been parsed. */

const shutdownMember = /"method"\s*:\s*"shutdown"/;
const escapedLetter = /\\u00([67][0-9a-f])/gi;

/**
 * True when the text holds a member `"method":"shutdown"` at any depth. Later lines wait for the answer of such a frame,
 * because nothing received after a shutdown may start. A quote inside a JSON string is escaped, so the words of an
 * input never match; a match that turns out to be no shutdown only costs the wait.
 */
export function namesShutdown(text: string): boolean {
  if (shutdownMember.test(text)) return true;
  if (!/\\u00[67]/.test(text)) return false;
  const unescaped = text.replace(escapedLetter, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return shutdownMember.test(unescaped);
}
