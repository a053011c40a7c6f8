/** Owns the variables that name a Python package index, which carry no `TRIVEC_`: those of pip and of uv. */
import { ConfigurationError } from '../errors.ts';
import { isHttpUrl, readProxies } from './hub.ts';
import type { ProxySettings } from './hub.ts';

/** Where wheels come from. */
export interface PythonIndexSettings extends ProxySettings {
  /** Address without a slash at its end, and without the name and password that its variable may hold. */
  readonly endpoint: string;
  /** Value of the header `authorization` for the index's own host; null where no password is set. */
  readonly authorization: string | null;
}

const defaultIndex = 'https://pypi.org/simple';
/** The stronger one first. */
const indexVariables = ['PIP_INDEX_URL', 'UV_INDEX_URL'] as const;

/** A part of an address without its escapes; a percent sign that begins none stands for itself, as pip takes it. */
function withoutEscapes(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function authorizationOf({ username, password }: URL): string | null {
  if (username === '' && password === '') return null;
  const pair = `${withoutEscapes(username)}:${withoutEscapes(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

/**
 * The index that the variables name, else the public one.
 * @throws ConfigurationError which never shows a value, since each of them may hold a secret
 */
export function readPythonIndex(variables: Readonly<Record<string, string | undefined>>): PythonIndexSettings {
  const name = indexVariables.find((variable) => (variables[variable] ?? '').trim() !== '');
  const address = (name === undefined ? defaultIndex : (variables[name] ?? '')).trim();
  const { proxies, problems } = readProxies(variables);
  if (!isHttpUrl(address)) problems.unshift(`${name ?? ''}: must be an http:// or https:// address`);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const url = new URL(address);
  const endpoint = `${url.origin}${url.pathname}`.replace(/\/+$/u, '');
  return { endpoint, authorization: authorizationOf(url), ...proxies };
}
