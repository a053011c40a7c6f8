/** Owns servers for tests of bulk runs over `--url`: themselves, what can be put in front of them, and sources over them. */
import { once, setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openServers, type ServersOptions } from '../../src/bulk/source/servers.ts';
import type { VectorSource } from '../../src/bulk/source/source.ts';
import { startServer, type TestServer } from './harness/server.ts';

/** A signal that never aborts. */
export const never = new AbortController().signal;
setMaxListeners(0, never);

export const wish = { method: 'dense', kind: 'document', model: null, dimensions: null } as const;

/** The fixture's vector of a text is its first four bytes. */
export const vectorOf = (text: string) => Float32Array.from({ length: 4 }, (_, place) => Buffer.from(text)[place] ?? 0);

/** What a test opens; `closeAll` closes it, the last first. */
export function createBulkServers(limits: Pick<ServersOptions, 'patienceMs' | 'answerTimeoutMs' | 'silenceMs'>) {
  const cleanups: (() => Promise<unknown>)[] = [];
  return {
    async closeAll(): Promise<void> {
      for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    },

    async start(
      overrides: Parameters<typeof startServer>[0] = {},
    ): Promise<{ readonly server: TestServer; readonly url: string }> {
      const server = await startServer({ maxQueuedItems: 64, ...overrides });
      cleanups.push(() => server.close());
      return { server, url: (await server.listener()).url };
    },

    async open(
      urls: readonly string[],
      changes: Partial<ServersOptions> = {},
    ): Promise<VectorSource & { readonly notes: string[] }> {
      const notes: string[] = [];
      const onNote = (note: string) => void notes.push(note);
      const source = await openServers({ urls, apiKey: null, wish, ...limits, onNote, ...changes }, never);
      cleanups.push(() => source.close());
      return { ...source, notes };
    },

    /** What is in front of a server: every answer goes through `answer`; undefined is none, ever. */
    async inFrontOf(
      url: string,
      answer: (method: string, text: string) => string | undefined,
    ): Promise<{ readonly url: string; readonly asked: string[] }> {
      const asked: string[] = [];
      const front = createServer((request, response) => {
        const parts: Buffer[] = [];
        request.on('data', (part: Buffer) => parts.push(part));
        request.on('end', () => {
          const method = (request.url ?? '').replace('/rcp/', '');
          asked.push(method);
          void fetch(`${url}${request.url ?? ''}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', authorization: request.headers.authorization ?? '' },
            body: Buffer.concat(parts),
          })
            .then((answered) => answered.text())
            .then((text) => {
              const told = answer(method, text);
              if (told !== undefined) response.setHeader('content-type', 'application/json').end(told);
            });
        });
      });
      front.listen(0, '127.0.0.1');
      await once(front, 'listening');
      cleanups.push(async () => {
        front.closeAllConnections();
        front.close();
        await once(front, 'close');
      });
      return { url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`, asked };
    },
  };
}
