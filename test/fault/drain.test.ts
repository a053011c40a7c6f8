/** Owns the end of a server that has work: from inside with a device that stands still, and as a process by signals. */
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { embedding, failure, ok, request } from '../support/harness/frames.ts';
import { openHttpClient } from '../support/harness/http-client.ts';
import { spawnFixture } from '../support/harness/process.ts';
import { startServer, type TestServer } from '../support/harness/server.ts';
import type { WatchedProcess } from '../support/harness/watch.ts';

const servers: TestServer[] = [];
const processes: WatchedProcess[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
  for (const { child } of processes.splice(0)) child.kill('SIGKILL');
});

describe('a drain', () => {
  it('turns ready to 503 at once while live stays 200, refuses new calls, and finishes what was accepted', async () => {
    const server = await startServer({ maxQueuedItems: 100 });
    servers.push(server);
    const client = await openHttpClient(server);
    const accepted = ['hold', 'a', 'b', 'c'].map((text, id) => client.ask(embedding(id, text)));
    const { gauges } = server.service.scheduler;
    while (gauges.runningItems + gauges.queuedItems < 4) await wait(2);
    const get = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${String(client.port)}${path}`);
      return [response.status, await response.text()] as const;
    };
    expect((await get('/health/ready'))[0]).toBe(200);
    server.service.beginDrain();
    const [status, body] = await get('/health/ready');
    expect([status, JSON.parse(body)]).toMatchObject([503, { reasons: ['the server is shutting down'] }]);
    expect((await get('/health/live'))[0]).toBe(200);
    const { value } = await client.ask(embedding('late', 'too late'));
    expect(value).toMatchObject(failure('late', -32010, { retryable: true }));
    const closed = (await server.listener()).close({ drainMs: 60_000 });
    server.engine.release();
    expect((await Promise.all(accepted)).map((answer) => answer.value)).toMatchObject([ok(0), ok(1), ok(2), ok(3)]);
    await closed;
    const ran = server.engine.batches.flatMap(({ items }) => items.map(({ ids }) => Buffer.from(ids).toString()));
    expect(ran).not.toContain('too late');
    await client.close();
  });
});

async function startProcess(): Promise<{ server: WatchedProcess; url: string }> {
  const server = spawnFixture(['--log-level', 'info']);
  processes.push(server);
  const [, url = ''] = /trivec listening on (\S+)/.exec(await server.until(/trivec listening on \S+/)) ?? [];
  return { server, url };
}

/** A call that the device never finishes; resolves when it is on the device. */
async function holdDevice(url: string): Promise<{ lost: Promise<unknown> }> {
  const body = request('held', 'embed', { inputs: ['hold'] });
  const lost = fetch(url, { method: 'POST', body }).then(
    () => 'answered',
    (error: unknown) => error,
  );
  const metrics = url.replace(/rcp$/, 'metrics');
  while (!/^trivec_running_inputs 1$/m.test(await (await fetch(metrics)).text())) continue;
  return { lost };
}

describe('a process that is asked to end twice', { timeout: 25_000 }, () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('by SIGTERM and then %s does not wait for its work', async (second) => {
    const { server, url } = await startProcess();
    const { lost } = await holdDevice(url);
    server.child.kill('SIGTERM');
    await server.until(/draining/);
    server.child.kill(second);
    // Without the second signal the drain would last longer than this test may.
    expect(await server.ended).not.toBe(0);
    expect(await lost).toBeInstanceOf(Error);
  });
});

describe('a process whose port is taken', () => {
  it('ends with exit code 2 and one line that names the address', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    try {
      const server = spawnFixture(['--port', String(port)]);
      processes.push(server);
      expect(await server.ended).toBe(2);
      const lines = server
        .stderr()
        .split('\n')
        .filter((line) => line.startsWith('trivec: '));
      expect(lines).toEqual([expect.stringContaining(`127.0.0.1:${String(port)}`)]);
      expect(server.stdout()).toBe('');
    } finally {
      other.close();
    }
  });
});
