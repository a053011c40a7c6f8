/** Owns connecting commands to one server, with what goes wrong said for a person. */
import { connect } from '../client/index.ts';
import { BulkFailure } from '../bulk/row.ts';
import { ConfigurationError } from '../errors.ts';

/** A client of one server. */
export type ServerClient = Awaited<ReturnType<typeof connect>>;

/** Longest time until a server has said what it is. @unit ms */
const connectTimeoutMs = 10_000;

/**
 * A client that has read what the server offers.
 * @throws ConfigurationError where the address is none; BulkFailure where nothing can be read from it
 */
export async function connectTo(url: string, apiKey: string | null): Promise<ServerClient> {
  if (!/^https?:\/\/[^\s/]+/u.test(url)) {
    throw new ConfigurationError([`a server's address begins with http:// or https://, not as ${url} does`]);
  }
  const key = apiKey === null ? {} : { apiKey };
  try {
    return await connect(url, { ...key, retry: { maxAttempts: 1 }, signal: AbortSignal.timeout(connectTimeoutMs) });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new BulkFailure(`no RCP server answers at ${url}: ${reason}`);
  }
}
