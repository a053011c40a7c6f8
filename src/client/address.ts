/** Owns reading the address of a server: where requests go, and what else it says. */

/** An address in its parts. A method is reached at `base/method` and the query. */
export interface Address {
  /** Such as `http://127.0.0.1:8000/rcp`; holds nothing secret. */
  readonly base: string;
  /** With its question mark, or empty: goes with every request, for what stands in front of the server. */
  readonly query: string;
  /** User name and password as a value of the header `Authorization`. */
  readonly authorization: string | null;
}

/** An address for messages: without user name, password and query, which may hold keys. */
export function shownAddress(target: string | URL): string {
  const url = urlOf(target);
  if (url !== null && url.host !== '') return `${url.protocol}//${url.host}${url.pathname}`.replace(/\/$/, '');
  // It may still hold a password, of which nobody can say where it ends.
  return String(target).replace(/^((?:[a-z][a-z0-9+.-]*:)?\/\/)?.*@/isu, '$1');
}

/**
 * The parts of an address. `http://127.0.0.1:8000` is reached at its path `/rcp`; a path is kept, for servers behind a proxy.
 * @throws TypeError where it is none of HTTP; it never holds a password or the query
 */
export function readAddress(target: string | URL): Address {
  const url = urlOf(target);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new TypeError(`${shownAddress(target)}: the address of a server begins with http:// or https://`);
  }
  const path = url.pathname.replace(/\/+$/, '');
  const base = `${url.origin}${path.endsWith('/rcp') ? path : `${path}/rcp`}`;
  return { base, query: url.search, authorization: authorizationOf(url, target) };
}

function urlOf(target: string | URL): URL | null {
  try {
    return new URL(target);
  } catch {
    return null;
  }
}

function authorizationOf({ username, password }: URL, target: string | URL): string | null {
  if (username === '' && password === '') return null;
  try {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    const bytes = new TextEncoder().encode(credentials);
    return `Basic ${btoa(String.fromCharCode(...bytes))}`;
  } catch {
    throw new TypeError(`${shownAddress(target)}: user name or password is not well encoded; % itself is %25`);
  }
}
