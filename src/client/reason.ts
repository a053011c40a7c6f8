/** Owns telling what is behind an error: `fetch failed` says nothing, its cause does. */

/** Causes of causes that are looked into. */
const maxDepth = 8;
/** Longest reason that is told, in UTF-16 units. */
const maxLength = 200;

/**
 * The innermost cause that says something, for the end of a message, such as
 * ` (self-signed certificate, DEPTH_ZERO_SELF_SIGNED_CERT)`; empty where nothing does.
 */
export function becauseOf(error: unknown): string {
  let reason = '';
  let at: unknown = error;
  for (let depth = 0; depth < maxDepth && isObject(at); depth++) {
    reason = reasonOf(at) || reason;
    at = at['cause'];
  }
  return reason === '' ? '' : ` (${reason})`;
}

function reasonOf(error: Readonly<Record<string, unknown>>): string {
  // One error for each address of a name that was tried.
  const { errors } = error;
  if (Array.isArray(errors) && errors.length > 0) {
    return cut([...new Set(errors.map((each: unknown) => (isObject(each) ? reasonOf(each) : '')))].join('; '));
  }
  const message = typeof error['message'] === 'string' ? error['message'].replaceAll(/\s+/gu, ' ').trim() : '';
  const code = typeof error['code'] === 'string' && !message.includes(error['code']) ? error['code'] : '';
  return cut([message, code].filter((part) => part !== '').join(', '));
}

const cut = (text: string) => (text.length > maxLength ? `${text.slice(0, maxLength)}…` : text);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
