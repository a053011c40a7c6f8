/** Owns the way to a host: directly, or through a proxy. */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';

/** Proxies, as the variables of the same names give them. */
export interface ProxySettings {
  readonly httpProxy: string | null;
  readonly httpsProxy: string | null;
  /** Hosts that are reached without a proxy, separated by commas or blanks; `*` is all. */
  readonly noProxy: string;
}

/** Connections that are kept open and used again. */
export interface Routes {
  agentFor(url: URL): HttpAgent;
  /** Ends every connection. */
  close(): void;
}

const plainHost = (hostname: string): string => hostname.replace(/^\[|\]$/gu, '').toLowerCase();

/** Whether an entry such as `example.com`, `.example.com:8080` or `*` names the host of an address or a part above it. */
function matchesEntry(url: URL, entry: string): boolean {
  if (entry === '*') return true;
  const [, name = '', port] = /^(.*?)(?::(\d+))?$/u.exec(/^[^[]*:[^\]]*:/u.test(entry) ? `[${entry}]` : entry) ?? [];
  const usedPort = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  if (port !== undefined && port !== usedPort) return false;
  const wanted = plainHost(name).replace(/^\*?\./u, '');
  const host = plainHost(url.hostname);
  return wanted !== '' && (host === wanted || host.endsWith(`.${wanted}`));
}

/** The proxy for an address; null where it is reached directly. */
export function proxyFor(url: URL, { httpProxy, httpsProxy, noProxy }: ProxySettings): string | null {
  if (noProxy.split(/[,\s]+/u).some((entry) => matchesEntry(url, entry))) return null;
  return url.protocol === 'https:' ? httpsProxy : httpProxy;
}

/** Ways to all hosts. Plain http goes to its proxy as a request, https through a tunnel that the proxy cannot read. */
export function createRoutes(settings: ProxySettings): Routes {
  const options = { keepAlive: true };
  const direct = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) };
  const proxied = {
    'http:': settings.httpProxy === null ? null : new HttpProxyAgent(settings.httpProxy, options),
    'https:': settings.httpsProxy === null ? null : new HttpsProxyAgent(settings.httpsProxy, options),
  };
  return {
    agentFor(url) {
      const protocol = url.protocol === 'https:' ? 'https:' : 'http:';
      return (proxyFor(url, settings) === null ? null : proxied[protocol]) ?? direct[protocol];
    },
    close() {
      for (const agent of [...Object.values(direct), ...Object.values(proxied)]) agent?.destroy();
    },
  };
}
