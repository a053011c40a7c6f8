/** Owns the rules of mirrors and proxies. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createHubClient } from '../../../src/model/hub/client.ts';
import { proxyFor } from '../../../src/model/hub/proxy.ts';
import { pullModel } from '../../../src/model/hub/pull.ts';
import { requireRepository } from '../../../src/model/hub/repository.ts';
import { misbehave } from '../../support/fake-hub.ts';
import { refusalOf, withRig } from './rig.ts';
import { graphPath, tinyId, tinyRepository } from './tiny-repository.ts';

const tiny = requireRepository(tinyId);

/** A proxy that answers requests from what is behind it, and only records tunnels. */
async function withProxy(
  test: (proxy: { readonly url: string; readonly seen: string[]; behind: string }) => Promise<void>,
): Promise<void> {
  const seen: string[] = [];
  const proxy = { url: '', seen, behind: '' };
  const server = createServer((request, response) => {
    seen.push(`${request.headers['proxy-authorization'] ?? 'nobody'} ${request.url ?? ''}`);
    const { port } = new URL(proxy.behind);
    const { pathname, search } = new URL(request.url ?? '', proxy.behind);
    const upstream = connect(Number(port), '127.0.0.1', () => {
      upstream.end(`GET ${pathname}${search} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n`);
      upstream.pipe(response.socket ?? process.stderr);
    });
  });
  server.on('connect', (request, socket) => {
    seen.push(`CONNECT ${request.url ?? ''}`);
    socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  try {
    await test(proxy);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('the way to a host', () => {
  const proxies = { httpProxy: 'http://plain:1', httpsProxy: 'http://secure:2' };
  it.each([
    ['https://hub.example/x', '', 'http://secure:2'],
    ['http://hub.example/x', '', 'http://plain:1'],
    ['https://hub.example/x', '*', null],
    ['https://hub.example/x', 'hub.example', null],
    ['https://HUB.example/x', 'other, .Example', null],
    ['https://hub.example/x', '*.example', null],
    ['https://hub.example/x', 'ub.example', 'http://secure:2'],
    ['https://hub.example/x', 'hub.example:443', null],
    ['https://hub.example/x', 'hub.example:8443', 'http://secure:2'],
    ['http://[::1]:80/x', '::1', null],
    ['http://[::1]:80/x', '[::1]:80', null],
    ['http://127.0.0.1:8080/x', 'localhost 127.0.0.1', null],
  ])('%s with NO_PROXY "%s" goes through %s', (address, noProxy, expected) => {
    expect(proxyFor(new URL(address), { ...proxies, noProxy })).toBe(expected);
  });
});

describe('proxies', () => {
  it('see every request, with their own credentials', async () => {
    await withProxy(async (proxy) => {
      const httpProxy = proxy.url.replace('http://', 'http://user:pass@');
      await withRig({ connection: { endpoint: 'http://hub.example', httpProxy } }, async ({ fake, hub }) => {
        proxy.behind = fake.url;
        fake.put(tinyId, await tinyRepository());
        await pullModel(hub, tiny, 'auto');
        const credentials = Buffer.from('user:pass').toString('base64');
        expect(proxy.seen.length).toBe(fake.requests.length);
        expect(proxy.seen.every((line) => line.startsWith(`Basic ${credentials} http://hub.example/`))).toBe(true);
      });
    });
  });

  it('an encrypted address is tunnelled, and a proxy that wants credentials is said so', async () => {
    await withProxy(async (proxy) => {
      await withRig({ connection: { endpoint: 'https://hub.example', httpsProxy: proxy.url } }, async ({ hub }) => {
        expect(await refusalOf(pullModel(hub, tiny, 'auto'))).toContain('the proxy wants credentials (407)');
        expect(proxy.seen).toEqual(['CONNECT hub.example:443']);
      });
    });
  });

  it('hosts of NO_PROXY are reached without', async () => {
    await withProxy(async (proxy) => {
      await withRig({ connection: { httpProxy: proxy.url, noProxy: 'localhost,127.0.0.1' } }, async ({ fake, hub }) => {
        fake.put(tinyId, await tinyRepository());
        await pullModel(hub, tiny, 'auto');
        expect(proxy.seen).toEqual([]);
      });
    });
  });
});

describe('a mirror', () => {
  it('under a path of its host gets every request there, the token with it', async () => {
    await withRig({ token: 'hf_x' }, async ({ fake, hub }) => {
      fake.always('/mirror/api/models/tiny-org/tiny.model-1/revision/main', misbehave.status(404));
      const connection = { ...hub.connection, endpoint: `${fake.url}/mirror` };
      await refusalOf(pullModel({ ...hub, connection }, tiny, 'auto'));
      expect(fake.requests.map(({ target, authorization }) => [target, authorization])).toEqual([
        ['/mirror/api/models/tiny-org/tiny.model-1/revision/main', 'Bearer hf_x'],
      ]);
    });
  });

  it('a body that is not read to its end leaves no connection behind', async () => {
    await withRig({}, async ({ fake, hub }) => {
      const commit = fake.put(tinyId, await tinyRepository());
      const client = createHubClient(hub.connection, hub.pacing.clock, hub.pacing.limits);
      const response = await client.get(`${fake.url}/${tinyId}/resolve/${commit}/${graphPath}`, tiny);
      for await (const chunk of response.body) {
        expect(chunk.byteLength).toBeGreaterThan(0);
        break;
      }
      client.close();
    });
  });
});
