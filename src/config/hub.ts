/** Owns the variables that all tools around the Hugging Face hub share, and that carry no `TRIVEC_`. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { ConfigurationError } from '../errors.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** Proxies, as every program reads them from the environment. */
export interface ProxySettings {
  /** Proxy for `http` addresses; null for none. */
  readonly httpProxy: string | null;
  readonly httpsProxy: string | null;
  /** Hosts that are reached without a proxy, separated by commas. */
  readonly noProxy: string;
}

/** Where models come from and where they are kept. */
export interface HubSettings extends ProxySettings {
  /** Address of the hub or of a mirror, without a slash at its end. */
  readonly endpoint: string;
  /** Sent to the endpoint's own host only; null where none is set. */
  readonly token: string | null;
  /** The cache that all tools share. */
  readonly cacheDir: string;
}

const defaultEndpoint = 'https://huggingface.co';
const truths: ReadonlySet<string> = new Set(['1', 'true', 'yes', 'on']);

/** The variable in upper case, else in lower case; null where neither says anything. */
function read(variables: Variables, name: string): string | null {
  const value = (variables[name] ?? '').trim() || (variables[name.toLowerCase()] ?? '').trim();
  return value === '' ? null : value;
}

/** Whether `HF_HUB_OFFLINE` forbids the network. */
export function isHubOffline(variables: Variables): boolean {
  return truths.has((read(variables, 'HF_HUB_OFFLINE') ?? '').toLowerCase());
}

function cacheDirOf(variables: Variables): string {
  const cacheDir = read(variables, 'HF_HUB_CACHE');
  if (cacheDir !== null) return resolve(cacheDir);
  const home = read(variables, 'HF_HOME');
  return home === null
    ? join(read(variables, 'XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'huggingface', 'hub')
    : resolve(home, 'hub');
}

/** Whether a value is an address that this program can ask. */
export function isHttpUrl(value: string): boolean {
  return URL.canParse(value) && ['http:', 'https:'].includes(new URL(value).protocol);
}

/** A proxy may be named without `http://`, as curl allows. */
function proxyOf(variables: Variables, name: string): string | null {
  const value = read(variables, name) ?? read(variables, 'ALL_PROXY');
  return value === null || value.includes('://') ? value : `http://${value}`;
}

/** The proxies, and what is wrong with their variables. */
export function readProxies(variables: Variables): { proxies: ProxySettings; problems: string[] } {
  const proxies = {
    httpProxy: proxyOf(variables, 'HTTP_PROXY'),
    httpsProxy: proxyOf(variables, 'HTTPS_PROXY'),
    noProxy: read(variables, 'NO_PROXY') ?? '',
  };
  const isUsable = (proxy: string | null): boolean => proxy === null || isHttpUrl(proxy);
  const problems = [
    ...(isUsable(proxies.httpProxy) ? [] : ['HTTP_PROXY: must be an http:// or https:// address']),
    ...(isUsable(proxies.httpsProxy) ? [] : ['HTTPS_PROXY: must be an http:// or https:// address']),
  ];
  return { proxies, problems };
}

/**
 * What the shared variables say.
 * @throws ConfigurationError which never shows a value, since each of them may hold a secret
 */
export function readHubSettings(variables: Variables): HubSettings {
  const endpoint = (read(variables, 'HF_ENDPOINT') ?? defaultEndpoint).replace(/\/+$/u, '');
  const token = read(variables, 'HF_TOKEN');
  const { proxies, problems: proxyProblems } = readProxies(variables);
  const problems = [
    ...(isHttpUrl(endpoint) ? [] : ['HF_ENDPOINT: must be an http:// or https:// address']),
    ...(token === null || /^[\x21-\x7e]+$/u.test(token) ? [] : ['HF_TOKEN: holds characters that no token has']),
    ...proxyProblems,
  ];
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { endpoint, token, cacheDir: cacheDirOf(variables), ...proxies };
}
