/** Owns connecting commands to one server, with what goes wrong said for a person. */
import { BulkFailure } from '../bulk/row.ts';
import { shownAddress } from '../client/address.ts';
import { connect, RcpError } from '../client/index.ts';
import { ConfigurationError } from '../errors.ts';

/** A client of one server. */
export type ServerClient = Awaited<ReturnType<typeof connect>>;

/** Longest time until a server has said what it is. @unit ms */
const connectTimeoutMs = 10_000;

/**
 * A client that has read what the server offers.
 * @throws ConfigurationError where the address or the key is none; BulkFailure where nothing can be read from it
 */
export async function connectTo(url: string, apiKey: string | null): Promise<ServerClient> {
  const shown = shownAddress(url);
  if (!/^https?:\/\/[^\s/]+/u.test(url)) {
    throw new ConfigurationError([`a server's address begins with http:// or https://, not as ${shown} does`]);
  }
  const key = apiKey === null ? {} : { apiKey };
  const signal = AbortSignal.timeout(connectTimeoutMs);
  try {
    return await connect(url, { ...key, retry: { maxAttempts: 1 }, signal });
  } catch (error) {
    // The client refuses what no request can be made of.
    if (error instanceof TypeError) throw new ConfigurationError([error.message]);
    if (signal.aborted && error === signal.reason) {
      throw new BulkFailure(`no RCP server answers at ${shown}: nothing within ${String(connectTimeoutMs / 1000)} s`);
    }
    if (!(error instanceof RcpError)) throw error;
    throw new BulkFailure(problemOf(error, shown, apiKey !== null));
  }
}

/** What kept a command from a server: nobody there, a key, or what the server itself says. */
function problemOf({ errorName, data, message }: RcpError, shown: string, hasKey: boolean): string {
  if (errorName === 'unauthorized') {
    return hasKey
      ? `${shown} refuses the key: ${message}`
      : `${shown} wants a key (--api-key or TRIVEC_API_KEY): ${message}`;
  }
  const isForeign = errorName === 'internal' && data.status !== undefined;
  const isAbsent = errorName === 'unavailable' || isForeign;
  return isAbsent ? `no RCP server answers at ${shown}: ${message}` : `${shown}: ${message}`;
}
