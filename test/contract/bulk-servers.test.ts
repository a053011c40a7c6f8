import { createServer, type Server } from 'node:http';
import { once, setMaxListeners } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { BulkFailure } from '../../src/bulk/row.ts';
import { openServers, type ServersOptions } from '../../src/bulk/source/servers.ts';
import type { VectorSource } from '../../src/bulk/source/source.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { startServer, type TestServer } from '../support/harness/server.ts';

const never = new AbortController().signal;
setMaxListeners(0, never);
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(overrides: Parameters<typeof startServer>[0] = {}): Promise<{ server: TestServer; url: string }> {
  const server = await startServer({ maxQueuedItems: 64, ...overrides });
  cleanups.push(() => server.close());
  return { server, url: (await server.listener()).url };
}

const wish = { method: 'dense', kind: 'document', model: null, dimensions: null } as const;

async function open(
  urls: readonly string[],
  changes: Partial<ServersOptions> = {},
): Promise<VectorSource & { notes: string[] }> {
  const notes: string[] = [];
  const onNote = (note: string) => void notes.push(note);
  const limits = { patienceMs: 20_000, answerTimeoutMs: 10_000, silenceMs: 5_000 };
  const options = { urls, apiKey: null, wish, ...limits, onNote, ...changes };
  const source = await openServers(options, never);
  cleanups.push(() => source.close());
  return { ...source, notes };
}

/** The fixture's vector of a text is its first four bytes. */
const vectorOf = (text: string) => Float32Array.from({ length: 4 }, (_, place) => Buffer.from(text)[place] ?? 0);
const listsOf = (count: number, prefix = '') =>
  Array.from({ length: count }, (_, list) => [`${prefix}${list}a`, `${prefix}${list}b`]);

async function embedAll(source: VectorSource, lists: readonly string[][]): Promise<void> {
  const answers = await Promise.all(lists.map((texts) => source.embed(texts, never)));
  for (const [position, { vectors, tokens }] of answers.entries()) {
    const texts = lists[position] ?? [];
    expect(vectors).toEqual({ kind: 'dense', vectors: texts.map(vectorOf) });
    expect(tokens).toBe(Buffer.byteLength(texts.join('')));
  }
}

/** A server in front of another one that changes what it says. */
async function rewriting(url: string, rewrite: (text: string) => string): Promise<string> {
  const proxy: Server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      void fetch(`${url}${request.url ?? ''}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: Buffer.concat(parts),
      })
        .then((answer) => answer.text())
        .then((text) => response.setHeader('content-type', 'application/json').end(rewrite(text)));
    });
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  cleanups.push(async () => {
    proxy.closeAllConnections();
    proxy.close();
    await once(proxy, 'close');
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

describe('several servers', () => {
  it('share the texts, and answer every one', async () => {
    const servers = [await start(), await start()];
    await embedAll(await open(servers.map(({ url }) => url)), listsOf(24));
    const [first, second] = servers.map(({ server }) => server.engine.batches.length);
    expect(Math.min(first ?? 0, second ?? 0)).toBeGreaterThan(8);
  });

  it('that refuse because they are full are asked again after the time they name', async () => {
    const { url } = await start({ maxQueuedItems: 2 });
    await embedAll(await open([url]), listsOf(12));
  });

  it('that die are left out, and their texts go to the others', async () => {
    const [dying, living] = [await start(), await start()];
    const source = await open([dying.url, living.url]);
    const lists = [...listsOf(3), ['slow:300', 'slow:301'], ...listsOf(20)];
    const all = embedAll(source, lists);
    await dying.server.close();
    await all;
    await embedAll(source, listsOf(6, 'x'));
    expect(source.notes.join('\n')).toContain(`${dying.url} is left out for now`);
  });

  it('that cannot be reached at the start are left out, unless none can', async () => {
    const { url } = await start();
    await embedAll(await open([url, 'http://127.0.0.1:9']), listsOf(4));
    await expect(open(['http://127.0.0.1:9'])).rejects.toThrow(BulkFailure);
  });

  it('of different models are refused with both names', async () => {
    const { url } = await start();
    const other = await rewriting(url, (text) => text.replaceAll('fix@1', 'fix@2'));
    await expect(open([url, other])).rejects.toMatchObject({
      problems: [expect.stringContaining('fix@1'), expect.stringContaining('fix@2')],
    });
  });

  it('that refuse the key end the run at once', async () => {
    const { url } = await start({ apiKey: ['secret'] });
    await expect(open([url], { apiKey: 'wrong' })).rejects.toThrow(ConfigurationError);
    await embedAll(await open([url], { apiKey: 'secret' }), listsOf(2));
  });

  it('that are all gone for longer than may be end the run', async () => {
    const { server, url } = await start();
    const source = await open([url], { patienceMs: 300 });
    await server.close();
    await expect(source.embed(['a'], never)).rejects.toThrow('no server has answered for');
  });

  it('end their calls when the run is ended', async () => {
    const { url } = await start();
    const source = await open([url]);
    const ended = new AbortController();
    const call = source.embed(['hold'], ended.signal);
    ended.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
  });
});

describe('one server', () => {
  it('gives sparse vectors and matrices as well', async () => {
    const { url } = await start();
    const sparse = await open([url], { wish: { ...wish, method: 'sparse' } });
    expect((await sparse.embed(['aab'], never)).vectors).toEqual({
      kind: 'sparse',
      sparse: [{ indices: Int32Array.of(97, 98), values: Float32Array.of(2, 1) }],
    });
    const multi = await open([url], { wish: { ...wish, method: 'multi' } });
    expect((await multi.embed(['ab'], never)).vectors).toEqual({
      kind: 'multi',
      matrices: [{ values: Float32Array.of(97, 0, 0, 0, 98, 0, 0, 0), dimension: 4 }],
    });
  });
});
