/** Owns running the rows of the contract: each as a test of its own, on a server of its own, on each transport it is for. */
import { expect, it } from 'vitest';
import type { Settings } from '../../../src/config/settings.ts';
import type { RcpClient } from './client.ts';
import { handshake, ok } from './frames.ts';
import { openHttpClient, type HttpClient } from './http-client.ts';
import { startServer, type TestServer } from './server.ts';
import { openStdioClient, type StdioClient } from './stdio-client.ts';

/** What a row changes of the fixture. */
export interface RowOptions {
  readonly settings?: Partial<Settings>;
  /** True: a stdio session in which nothing has been said yet; else it is initialized. */
  readonly isFresh?: boolean;
}

type Check<Client> = (client: Client, server: TestServer) => Promise<void>;

async function run<Client extends RcpClient>(
  open: (server: TestServer) => Client | Promise<Client>,
  check: Check<Client>,
  { settings, isFresh = false }: RowOptions,
): Promise<void> {
  const server = await startServer(settings);
  try {
    const client = await open(server);
    try {
      if (client.transport === 'stdio' && !isFresh) {
        expect((await client.ask(handshake('handshake'))).value).toMatchObject(ok('handshake'));
      }
      await check(client, server);
    } finally {
      await client.close();
    }
    expect(client.problems()).toEqual([]);
    expect(server.logText()).not.toContain('because of a bug');
  } finally {
    await server.close();
  }
}

/** A row for stdio; its title starts with its id. */
export function onStdio(title: string, check: Check<StdioClient>, options: RowOptions = {}): void {
  it.concurrent(`${title} (stdio)`, () => run(openStdioClient, check, options));
}

/** A row for HTTP; its title starts with its id. */
export function onHttp(title: string, check: Check<HttpClient>, options: RowOptions = {}): void {
  it.concurrent(`${title} (http)`, () => run(openHttpClient, check, options));
}

/** A row for both transports; its title starts with its id. */
export function onBoth(title: string, check: Check<RcpClient>, options: RowOptions = {}): void {
  onStdio(title, check, options);
  onHttp(title, check, options);
}

/** Asks, and expects what came to have at least these members. */
export async function answers(client: RcpClient, frame: string | Buffer, expected: object): Promise<void> {
  const { value } = await client.ask(frame);
  if (Array.isArray(expected)) expect(value, String(frame)).toHaveLength(expected.length);
  expect(value, frame.toString().slice(0, 300)).toMatchObject(expected);
}

/** Asks each frame in turn. */
export async function answersEach(
  client: RcpClient,
  table: readonly (readonly [string | Buffer, object])[],
): Promise<void> {
  for (const [frame, expected] of table) await answers(client, frame, expected);
}
