/** Owns servers with a client each, opened by the tests of a file and closed after every one. */
import { afterEach } from 'vitest';
import type { Settings } from '../../../src/config/settings.ts';
import { openHttpClient, type HttpClient } from './http-client.ts';
import { startServer, type TestServer } from './server.ts';

/** Starts a fixture server and a client of it. */
export type StartWithClient = (
  settings?: Partial<Settings>,
) => Promise<{ readonly server: TestServer; readonly client: HttpClient }>;

/** To be called once in a file of tests. */
export function closedAfterEach(): StartWithClient {
  const opened: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });
  return async (settings = {}) => {
    const server = await startServer(settings);
    const client = await openHttpClient(server);
    opened.push(client, server);
    return { server, client };
  };
}

/** A request as it stands on the wire. */
export const embedRequest = (body: string): string =>
  `POST /rcp/embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
