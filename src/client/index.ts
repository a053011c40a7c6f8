/** Owns the client's entry for Node: HTTP, and servers that are processes of the client's own. */
import { connect as connectHttp } from './browser.ts';
import { openClient, type Client } from './client.ts';
import type { HttpClientOptions } from './options.ts';
import type { StdioClientOptions, StdioTarget } from './stdio-options.ts';
import { defaultMaxAnswerBytes } from './transport.ts';

export type * from './browser.ts';
export { RcpError } from './error.ts';
export type { StdioClientOptions, StdioTarget } from './stdio-options.ts';

/**
 * Connects to the server at an address such as `http://127.0.0.1:8000` and reads what it offers.
 * @throws RcpError; the signal's reason; TypeError for an address, a key or a header that no request can carry
 */
export async function connect(target: string | URL, options?: HttpClientOptions): Promise<Client>;
/**
 * Starts a server as a process of its own and speaks to it through its standard input and output; `close` ends it.
 * @throws RcpError; the signal's reason
 */
export async function connect(target: StdioTarget, options?: StdioClientOptions): Promise<Client>;
export async function connect(
  target: string | URL | StdioTarget,
  options: HttpClientOptions | StdioClientOptions = {},
): Promise<Client> {
  if (typeof target === 'string' || target instanceof URL) return connectHttp(target, options);
  // Loaded only where it is used: it needs Node.
  const { createStdioTransport } = await import('./stdio.ts');
  const { maxAnswerBytes = defaultMaxAnswerBytes } = options;
  return openClient(createStdioTransport(target, { maxAnswerBytes }), options);
}
