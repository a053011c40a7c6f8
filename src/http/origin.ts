/** Owns who may call from where: the `Host` and `Origin` tables and the CORS headers. */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/** What the operator allows. */
export interface AccessPolicy {
  /** Origins of web pages that may call, such as `https://app.example`. */
  readonly corsOrigins: readonly string[];
  /** Names accepted in `Host` beside loopback; null checks `Host` only where the bind is loopback. */
  readonly allowedHosts: readonly string[] | null;
  readonly isLoopbackBind: boolean;
}

/** Seconds a browser may remember a preflight. @unit s */
const preflightMaxAgeSeconds = 600;

const normalizeOrigin = (origin: string) => origin.toLowerCase().replace(/\/$/, '');
const withoutPort = (host: string) => host.replace(/:\d*$/, '');

/** The `Host` of a request as it was sent: the parsed headers no longer have it, lest the adapter judge it first. */
export function hostOf({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): string | undefined {
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === 'host') return rawHeaders[index + 1];
  }
  return undefined;
}

const maxPort = 65_535;
/** A name, an IPv4 address or a bracketed IPv6 address, with or without a port. */
const hostPattern = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::(\d*))?$/i;

/** True without a `Host`, for an empty one, and for one that a URL could name. */
export function isHostWellFormed(host: string | undefined): boolean {
  if (host === undefined || host === '') return true;
  const match = hostPattern.exec(host);
  return match !== null && Number(match[1] ?? 0) <= maxPort;
}

/**
 * True for a `Host` that names this machine or an allowed name, with or without a port. A page that rebinds its own
 * name to a loopback address still sends that name.
 */
export function isHostAllowed(host: string | undefined, policy: AccessPolicy): boolean {
  if (policy.allowedHosts === null && !policy.isLoopbackBind) return true;
  if (host === undefined) return false;
  const full = host.toLowerCase();
  const name = withoutPort(full);
  if (name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name)) return true;
  return (policy.allowedHosts ?? []).some((allowed) => [full, name].includes(allowed.toLowerCase()));
}

/**
 * True without an `Origin`, for a configured one, and for a page of this server itself; everything else, `null`
 * included, is a page nobody invited.
 */
export function isOriginAllowed(origin: string | undefined, policy: AccessPolicy, host?: string): boolean {
  return origin === undefined || isConfigured(origin, policy) || isOwnPage(origin, policy, host);
}

const isConfigured = (origin: string, { corsOrigins }: AccessPolicy) =>
  corsOrigins.some((allowed) => normalizeOrigin(allowed) === normalizeOrigin(origin));

const addressPattern = /^(?:\[[\da-f:.]+\]|\d{1,3}(?:\.\d{1,3}){3})$/;

/**
 * A page from the very host that is asked. A page that rebinds its name to this machine looks the same, so that the
 * host must be an address, which nobody can rebind, or a name that was checked.
 */
function isOwnPage(origin: string, policy: AccessPolicy, host: string | undefined): boolean {
  const full = host?.toLowerCase();
  if (full === undefined || !/^https?:\/\//.test(origin)) return false;
  if (origin.toLowerCase().replace(/^https?:\/\//, '') !== full) return false;
  return addressPattern.test(withoutPort(full)) || isHostAllowed(host, { ...policy, isLoopbackBind: true });
}

/** Headers of answers that clients read, beside those that every page may see. */
const exposedHeaders = ['Retry-After', 'X-Request-Id', 'Server-Timing', 'Allow', 'ETag', 'WWW-Authenticate'];

/** The headers that let an allowed page read any answer; none for other callers. */
export function corsHeaders(origin: string | undefined, policy: AccessPolicy): OutgoingHttpHeaders {
  if (origin === undefined || !isConfigured(origin, policy)) return {};
  return {
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Expose-Headers': exposedHeaders.join(', '),
    Vary: 'Origin',
  };
}

/** What a preflight is told beside `corsHeaders`. */
export const preflightHeaders: OutgoingHttpHeaders = {
  'Access-Control-Allow-Methods': 'POST, OPTIONS',
  'Access-Control-Allow-Headers': 'content-type, authorization, accept, rcp-session',
  'Access-Control-Max-Age': String(preflightMaxAgeSeconds),
};

/** Names of headers that a preflight may ask for; what their values may do, every caller without a browser may do too. */
const headerNames = /^[\w-]+(?:, ?[\w-]+)*$/;
/** @unit characters */
const maxHeaderNames = 2048;

/** The same for routes whose clients send headers of their own: what an allowed page asks for is allowed. */
export function openPreflightHeaders(
  requested: string | undefined,
  methods: readonly string[] = ['GET', 'POST'],
): OutgoingHttpHeaders {
  const isUsable = requested !== undefined && requested.length <= maxHeaderNames && headerNames.test(requested);
  return {
    ...preflightHeaders,
    'Access-Control-Allow-Methods': [...methods, 'OPTIONS'].join(', '),
    ...(isUsable ? { 'Access-Control-Allow-Headers': requested } : {}),
  };
}
