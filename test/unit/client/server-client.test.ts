import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { connectTo } from '../../../src/cli/server-client.ts';
import { makeCertificate, needsOpenssl } from '../../support/certificates.ts';
import { temporaryFolder } from '../../support/files.ts';
import { fakeInfo, rejectionOf } from './fake-server.ts';

const servers: { close(): unknown; closeAllConnections(): void }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function listening(server: ReturnType<typeof createServer>): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
/** Answers everything with this status and body. */
const answering =
  (status: number, body: object): RequestListener =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
const refused = (code: number, message: string) => ({ jsonrpc: '2.0', id: null, error: { code, message } });

describe('a command that reaches no server', () => {
  it('says that none answers, and why', async () => {
    const port = await listening(createServer());
    servers.splice(0).forEach((server) => server.close());
    const error = await rejectionOf(connectTo(`http://user:geheim@127.0.0.1:${port}/?key=geheim`, null));
    expect(error.name).toBe('BulkFailure');
    expect(error.message).toMatch(/^no RCP server answers at http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/);
    expect(error.message).not.toContain('geheim');
  });

  it.skipIf(needsOpenssl.skip)(needsOpenssl.title('names the certificate that nobody vouches for'), async () => {
    const { certFile, keyFile } = makeCertificate(temporaryFolder(), 'own');
    const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
    const port = await listening(createTlsServer(tls, answering(200, {})));
    const error = await rejectionOf(connectTo(`https://127.0.0.1:${port}`, null));
    expect(error.message).toMatch(/\(self-signed certificate\b.*, DEPTH_ZERO_SELF_SIGNED_CERT\)/);
  });

  it('says that none answers where something else does', async () => {
    const port = await listening(createServer(answering(404, { detail: 'Not Found' })));
    const error = await rejectionOf(connectTo(`http://127.0.0.1:${port}`, null));
    expect(error.message).toMatch(/^no RCP server answers at .*: .*HTTP 404/);
  });

  it.each([
    [401, refused(-32012, 'no such key')],
    [401, { error: 'unauthorized' }],
    [403, { message: 'forbidden' }],
  ])(
    'is told of a wrong key (HTTP %i, %j) as of a wrong key, and of a missing one as of that',
    async (status, body) => {
      const port = await listening(createServer(answering(status, body)));
      const url = `http://127.0.0.1:${port}`;
      expect((await rejectionOf(connectTo(url, 'wrong'))).message).toMatch(/^http:\/\/\S+ refuses the key: /);
      expect((await rejectionOf(connectTo(url, null))).message).toMatch(/^http:\/\/\S+ wants a key \(--api-key/);
    },
  );

  it('is told what a server says that does answer', async () => {
    const port = await listening(createServer(answering(200, refused(-32011, 'too many at once'))));
    const error = await rejectionOf(connectTo(`http://127.0.0.1:${port}`, null));
    expect(error.message).toMatch(/^http:\/\/\S+: too many at once$/);
  });

  it.each([
    ['ftp://user:geheim@h', null],
    ['http://user:geheim@h', 'key'],
    ['http://h', 'a\nb'],
  ])('refuses %j with the key %j as a wrong setting', async (url, key) => {
    const error = await rejectionOf(connectTo(url, key));
    expect(error.name).toBe('ConfigurationError');
    expect(error.message).not.toContain('geheim');
  });
});

describe('a command that reaches a server', () => {
  it('knows what it offers', async () => {
    const answer: RequestListener = (request, response) => {
      request.resume();
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: fakeInfo }));
    };
    const port = await listening(createServer(answer));
    expect((await connectTo(`http://127.0.0.1:${port}`, null)).identity('embed')).toBe('plain@1');
  });
});
