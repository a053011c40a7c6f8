import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { connect as connectInBrowser, RcpError } from '../../src/client/browser.ts';
import { launchChromium, needsChromium } from '../support/chromium.ts';
import { startServer, type TestServer } from '../support/harness/server.ts';

const built = new URL('../../dist/client/', import.meta.url);

/** A site of its own: a page for each entry of the client, which it imports as it is built. */
async function startSite(): Promise<{ site: Server; origin: string }> {
  const site = createServer((incoming, outgoing) => {
    const [, module, entry] = /^\/(?:client\/([a-z0-9-]+\.js)|(\w+)\.html)$/.exec(incoming.url ?? '') ?? [];
    if (module !== undefined) {
      outgoing.writeHead(200, { 'content-type': 'text/javascript' }).end(readFileSync(new URL(module, built)));
      return;
    }
    const script = `import { connect } from '/client/${String(entry)}.js'; globalThis.connect = connect;`;
    const page = `<!doctype html><link rel="icon" href="data:,"><script type="module">${script}</script>`;
    outgoing.writeHead(200, { 'content-type': 'text/html' }).end(page);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  return { site, origin: `http://127.0.0.1:${String((site.address() as AddressInfo).port)}` };
}

type Connect = typeof connectInBrowser;

interface Seen {
  readonly vectors: readonly (readonly number[])[];
  readonly kind: string | undefined;
  readonly order: readonly number[];
  readonly progress: readonly number[];
  readonly abort: unknown;
  readonly refusal: unknown;
}

/** Runs in the page. */
async function use({ url, apiKey }: { url: string; apiKey: string }): Promise<Seen> {
  const { connect } = globalThis as unknown as { connect: Connect };
  const client = await connect(url, { apiKey });
  const { vectors } = await client.embed(['a', 'b', 'c', 'd', 'e'], { kind: 'document' });
  const { order } = await client.rerank('a b', ['c', 'a', 'a b', 'b', 'x']);
  const progress: number[] = [];
  await client.embed(['slow:20', 'slow:20'], {
    onProgress: (now) => progress.push(now.progress),
  });
  const nameOf = (error: RcpError) => [error.name, error.errorName];
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 100);
  const abort = await client
    .embed(['slow:2000'], { signal: controller.signal })
    .catch((error: unknown) => (error as Error).name);
  const refusal = await client.embed(['a'], { output: 'int4' as 'int8' }).catch(nameOf);
  return {
    vectors: vectors.map((vector) => [...vector]),
    kind: vectors[0]?.constructor.name,
    order,
    progress,
    abort,
    refusal,
  };
}

const apiKey = 'a-key-of-sixteen-characters';

describe.skipIf(needsChromium.skip)('the client in a browser', () => {
  let site: Server;
  let origin: string;
  let server: TestServer;
  let url: string;
  let browser: Browser;

  const open = async (address: string): Promise<Page> => {
    const page = await browser.newPage();
    await page.goto(address);
    await page.waitForFunction(() => 'connect' in globalThis);
    return page;
  };

  beforeAll(async () => {
    ({ site, origin } = await startSite());
    // What one test has stopped waiting for may still run when the next one begins.
    server = await startServer({ corsOrigins: [origin], apiKey: [apiKey], maxQueuedItems: 100 });
    ({ url } = await server.listener());
    browser = await launchChromium();
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    await server.close();
    site.close();
  });

  it('embeds, ranks, reports, stops and refuses on a page that the server lets in', { timeout: 60_000 }, async () => {
    const seen = await (await open(`${origin}/browser.html`)).evaluate(use, { url, apiKey });
    expect(seen).toEqual({
      vectors: [97, 98, 99, 100, 101].map((byte) => [byte, 0, 0, 0]),
      kind: 'Float32Array',
      order: [2, 1, 3, 0, 4],
      progress: [0.5, 1],
      abort: 'AbortError',
      refusal: ['RcpError', 'unsupportedOption'],
    });
  });

  it('speaks HTTP from the entry for Node too, where no bundler chooses one', { timeout: 60_000 }, async () => {
    const seen = await (await open(`${origin}/index.html`)).evaluate(use, { url, apiKey });
    expect(seen.vectors).toHaveLength(5);
  });

  it('says that there is no connection on a page that the server does not let in', { timeout: 60_000 }, async () => {
    const other = await open(`${origin.replace('127.0.0.1', 'localhost')}/browser.html`);
    const name = await other.evaluate(
      (target) =>
        (globalThis as unknown as { connect: Connect }).connect(target, { retry: { maxAttempts: 1 } }).then(
          () => 'connected',
          (error: unknown) => (error as RcpError).errorName,
        ),
      url,
    );
    expect(name).toBe('unavailable');
  });
});
