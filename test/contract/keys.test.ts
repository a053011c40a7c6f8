/** Owns what keys may and may not do on a whole server: shares of the queue, the metrics that show them, the process. */
import { existsSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCertificate, needsOpenssl } from '../support/certificates.ts';
import { temporaryFolder } from '../support/files.ts';
import { embedding, failure, ok, pong, request } from '../support/harness/frames.ts';
import { spawnFixture } from '../support/harness/process.ts';
import { onHttp } from '../support/harness/rows.ts';

const folder = temporaryFolder();
const keyFile = join(folder, 'keys');
writeFileSync(keyFile, 'greedy:g1 queuedTokens=20\nmodest:m1\nsilent\nfast:f1 requestsPerSecond=1 requestBurst=3\n', {
  mode: 0o600,
});
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

describe('a key with a share of the queue', () => {
  onHttp(
    'cannot fill it: over its share it is -32011 with both times, and other keys are served',
    async (client, server) => {
      const held = client.post('/rcp/embed', embedding('held', 'hold'), bearer('g1'));
      const { gauges } = server.service.scheduler;
      const untilTaken = (count: number) =>
        expect.poll(() => gauges.runningItems + gauges.queuedItems, { interval: 2 }).toBe(count);
      await untilTaken(1);
      const waiting = client.post('/rcp/embed', embedding('waiting', 'ab'), bearer('g1'));
      await untilTaken(2);
      const before = server.engine.batches.length;
      const { status, headers, body } = await client.post('/rcp/embed', embedding(3, 'x'.repeat(60)), bearer('g1'));
      expect(status).toBe(200);
      expect(JSON.parse(body)).toMatchObject(failure(3, -32011, { retryable: true, limit: 20 }));
      const { retryAfterMs } = JSON.parse(body).error.data;
      expect(retryAfterMs).toBeGreaterThan(0);
      expect(Number(headers['retry-after'])).toBe(Math.ceil(retryAfterMs / 1000));
      expect(server.engine.batches.length).toBe(before);
      const others = [
        client.post('/rcp/embed', embedding(4, 'x'.repeat(60)), bearer('m1')),
        client.post('/rcp/embed', embedding(5, 'x'.repeat(60)), bearer('silent')),
      ];
      await untilTaken(4);
      server.engine.release();
      for (const answer of await Promise.all([held, waiting, ...others])) {
        expect(JSON.parse(answer.body)).toHaveProperty('result');
      }
      const again = await client.post('/rcp/embed', embedding(6, 'x'.repeat(60)), bearer('g1'));
      expect(JSON.parse(again.body)).toMatchObject(ok(6));
    },
    { settings: { apiKeyFile: keyFile, maxQueuedItems: 100 } },
  );

  onHttp(
    'is named in the metrics by its name and never by itself',
    async (client) => {
      for (let call = 0; call < 6; call++) await client.post('/rcp/ping', request(1, 'ping'), bearer('f1'));
      for (let call = 0; call < 3; call++) await client.post('/rcp/ping', request(1, 'ping'), bearer('s3cr3t'));
      const { body } = await client.exchange('GET', '/metrics', '', bearer('m1'));
      expect(body).toMatch(/^trivec_key_refusals_total\{key="fast",reason="rate"\} 3$/m);
      expect(body).toMatch(/^trivec_key_refusals_total\{key="unnamed",reason="rate"\} 2$/m);
      expect(body).toMatch(/^trivec_refused_requests_total\{reason="rate"\} 5$/m);
      expect(body).not.toMatch(/f1|s3cr3t/);
    },
    {
      settings: {
        apiKey: ['s3cr3t'],
        apiKeyFile: keyFile,
        keyRequestsPerSecond: 1,
        keyRequestBurst: 1,
      },
    },
  );

  onHttp(
    'pays for every call of an array',
    async (client) => {
      const array = `[${[1, 2, 3].map((id) => request(id, 'ping')).join(',')}]`;
      expect(JSON.parse((await client.post('/rcp', array, bearer('f1'))).body)).toMatchObject(
        [1, 2, 3].map((id) => pong(id)),
      );
      expect(JSON.parse((await client.post('/rcp', array, bearer('f1'))).body)).toMatchObject(failure(null, -32011));
    },
    { settings: { apiKeyFile: keyFile } },
  );
});

/** The body of a ping over either protocol. */
function ping(options: RequestOptions, isSecure = false): Promise<string> {
  return new Promise((resolve, reject) => {
    const send = isSecure ? httpsRequest : httpRequest;
    const outgoing = send({ path: '/rcp/ping', method: 'POST', agent: false, ...options }, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      incoming.on('end', () => {
        resolve(text);
      });
    });
    outgoing.on('error', reject).end(request(1, 'ping'));
  });
}

describe('the process', () => {
  it('on a Unix socket says so, serves there, and leaves nothing behind', async () => {
    const path = join(folder, 'trivec.sock');
    const server = spawnFixture(['--socket', path, '--log-level', 'warn']);
    await server.until(new RegExp(`^trivec listening on unix:${path}$`, 'm'));
    expect(JSON.parse(await ping({ socketPath: path }))).toMatchObject(pong(1));
    server.child.kill('SIGTERM');
    expect(await server.ended).toBe(0);
    expect(existsSync(path)).toBe(false);
  });

  it.skipIf(needsOpenssl.skip)(needsOpenssl.title('with a certificate says https and serves it'), async () => {
    const { certFile, keyFile: tlsKey } = makeCertificate(folder, 'served');
    const server = spawnFixture(['--tls-cert', certFile, '--tls-key', tlsKey, '--log-level', 'warn']);
    const [, port = ''] = /on https:\/\/127\.0\.0\.1:(\d+)\/rcp$/m.exec(await server.until(/listening on \S+/)) ?? [];
    const options = { host: '127.0.0.1', port: Number(port), rejectUnauthorized: false };
    expect(JSON.parse(await ping(options, true))).toMatchObject(pong(1));
    server.child.kill('SIGTERM');
    expect(await server.ended).toBe(0);
  });

  it('names every file that it cannot use at once, and ends with exit code 2', async () => {
    const server = spawnFixture([
      '--tls-cert',
      '/nowhere/c',
      '--tls-key',
      '/nowhere/k',
      '--api-key-file',
      '/nowhere/f',
    ]);
    expect(await server.ended).toBe(2);
    expect(server.stderr().match(/^trivec: .*no such file/gm)).toHaveLength(3);
    expect(server.stderr()).not.toContain('listening');
  });

  it('on a socket that another one serves ends with exit code 2', async () => {
    const path = join(folder, 'taken.sock');
    const first = spawnFixture(['--socket', path, '--log-level', 'warn']);
    await first.until(/listening/);
    const second = spawnFixture(['--socket', path]);
    expect(await second.ended).toBe(2);
    expect(second.stderr()).toMatch(/already in use/);
    first.child.kill('SIGKILL');
    await first.ended;
    expect(existsSync(path)).toBe(true);
    const third = spawnFixture(['--socket', path, '--log-level', 'warn']);
    await third.until(/listening/);
    third.child.kill('SIGTERM');
    expect(await third.ended).toBe(0);
  });
});
