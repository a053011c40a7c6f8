/** Owns what can go wrong between here and the hub: whether another try helps, and what a person should do. */
import { ConfigurationError } from '../../errors.ts';

/** One failed try. */
export class HubFault extends Error {
  override readonly name = 'HubFault';
  readonly isRetryable: boolean;
  /** Pause that the server asked for; null where it asked for none. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    { isRetryable, retryAfterMs = null }: { isRetryable: boolean; retryAfterMs?: number | null },
  ) {
    super(message);
    this.isRetryable = isRetryable;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A fault that the same request may not meet again. */
export const passing = (message: string, retryAfterMs: number | null = null): HubFault =>
  new HubFault(message, { isRetryable: true, retryAfterMs });

/** A fault that stays until a person changes something. */
export const lasting = (message: string): HubFault => new HubFault(message, { isRetryable: false });

/** An answer whose status is neither a success nor a redirect. */
export interface RefusedAnswer {
  readonly status: number;
  /** The header `x-error-code`, such as `GatedRepo`; null where there is none. */
  readonly errorCode: string | null;
  readonly retryAfterMs: number | null;
  /** Address without its query, which may hold a signature. */
  readonly address: string;
  /** Whether the answer came from the endpoint itself and not from where it redirects to. */
  readonly isEndpoint: boolean;
}

/** What a refusal of the hub is judged by. */
export interface Refusal extends RefusedAnswer {
  readonly repositoryId: string;
  /** Page of the repository, for a person. */
  readonly page: string;
  readonly hasToken: boolean;
}

const gated = ({ repositoryId, page, hasToken }: Refusal): string =>
  `${repositoryId} is gated: accept its terms on ${page}, then ` +
  (hasToken ? 'use an HF_TOKEN of that account' : 'set HF_TOKEN to a token of that account');

function unauthorized(refusal: Refusal): string {
  const { repositoryId, hasToken } = refusal;
  if (refusal.errorCode === 'GatedRepo') return gated(refusal);
  return hasToken
    ? `the hub does not accept HF_TOKEN for ${repositoryId} (401): check that the token is whole, not expired and may ` +
        'read the repository, and that the name is right'
    : `the hub wants to know who asks for ${repositoryId} (401): the name is wrong, or the repository is private: ` +
        'then set HF_TOKEN';
}

function forbidden(refusal: Refusal): string {
  if (refusal.errorCode === 'GatedRepo') return gated(refusal);
  return (
    `the hub forbids access to ${refusal.repositoryId} (403): ` +
    (refusal.hasToken ? 'the account of HF_TOKEN may not read it' : 'set HF_TOKEN to a token that may read it') +
    `, see ${refusal.page}`
  );
}

/** The fault that a status stands for. */
export function faultOf(refusal: Refusal): HubFault {
  const { status, errorCode, repositoryId, address, retryAfterMs } = refusal;
  if (status === 429) {
    return passing(
      `${address} answers 429: too many requests${refusal.hasToken ? '' : ' (HF_TOKEN raises the limit)'}`,
      retryAfterMs,
    );
  }
  if (status === 408 || status >= 500) return passing(`${address} answers ${String(status)}`, retryAfterMs);
  // A signed address that has run out answers 403; the next try gets a fresh one.
  if (!refusal.isEndpoint) return passing(`${address}, where the hub redirects to, answers ${String(status)}`);
  if (status === 401) return lasting(unauthorized(refusal));
  if (status === 403) return lasting(forbidden(refusal));
  if (status === 404 && errorCode === 'RevisionNotFound') {
    return lasting(`${repositoryId} has no such revision (404 at ${address})`);
  }
  if (status === 404) return lasting(`${address} is not there (404): check the name, the revision and HF_ENDPOINT`);
  if (status === 407) return lasting('the proxy wants credentials (407): put them into HTTPS_PROXY or HTTP_PROXY');
  return lasting(`${address} answers ${String(status)}, which no hub does: check HF_ENDPOINT and the proxy`);
}

const certificateCode = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/u;

/** The fault that an error of the connection stands for. */
export function connectionFault(error: unknown, address: string): HubFault {
  if (error instanceof HubFault) return error;
  const { code, message } = error as { code?: unknown; message?: unknown };
  const reason = typeof code === 'string' ? code : String(message);
  return certificateCode.test(reason)
    ? lasting(`${address}: its certificate is not trusted (${reason}); NODE_EXTRA_CA_CERTS names further authorities`)
    : passing(`${address}: the connection failed (${reason})`);
}

/** What ends the command: one problem with its remedy. */
export const givenUp = (what: string, fault: HubFault, attempts: number): ConfigurationError =>
  new ConfigurationError([`${what}: ${fault.message}${attempts > 1 ? ` (tried ${String(attempts)} times)` : ''}`]);
