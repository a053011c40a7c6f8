/** Owns the requests to the hub: the token, and what a refusal means. */
import type { Clock } from '../../clock.ts';
import { faultOf } from './fault.ts';
import { createHttpClient } from './http-client.ts';
import type { HttpResponse } from './http-client.ts';
import type { HubLimits } from './limits.ts';
import type { ProxySettings } from './proxy.ts';
import type { Repository } from './repository.ts';

/** How the hub is reached. */
export interface HubConnection extends ProxySettings {
  /** Address of the hub or of a mirror, without a slash at its end. */
  readonly endpoint: string;
  /** Goes to the endpoint's own origin only; null for none. */
  readonly token: string | null;
}

/** Requests to one hub. */
export interface HubClient {
  readonly endpoint: string;
  /**
   * The answer to a GET, redirects followed. Its body must be read or left by `break`.
   * Throws a HubFault for everything else.
   */
  get(url: string, repository: Repository, headers?: Readonly<Record<string, string>>): Promise<HttpResponse>;
  /** Ends every connection. */
  close(): void;
}

/** A client for one hub. */
export function createHubClient(connection: HubConnection, clock: Clock, limits: HubLimits): HubClient {
  const { endpoint, token } = connection;
  const authorization = token === null ? null : `Bearer ${token}`;
  const client = createHttpClient({ ...connection, authorization }, clock, limits);
  return {
    endpoint,
    get: (url, { id }, headers) =>
      client.get(
        url,
        (refused) => faultOf({ ...refused, repositoryId: id, page: `${endpoint}/${id}`, hasToken: token !== null }),
        headers,
      ),
    close: () => {
      client.close();
    },
  };
}
