/** Owns reading a request target: which path it names, and which RCP method that path stands for. */

/** Where RCP is served. */
export const basePath = '/rcp';

/** The path of an absolute URL as it was sent: no query, no fragment, percent escapes untouched. */
export function rawPathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3);
  const length = url.slice(start).search(/[?#]/);
  return length === -1 ? url.slice(start) : url.slice(start, start + length);
}

/**
 * The method that a path under the base names, percent-decoded and without one trailing slash; null at the bare base
 * and at `/rcp/batch`, which name none. A path that cannot be decoded is taken literally, so that it matches no method.
 */
export function pathMethodOf(path: string): string | null {
  const name = decode(path.slice(basePath.length).replace(/^\//, '').replace(/\/$/, ''));
  return name === '' || name === 'batch' ? null : name;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
