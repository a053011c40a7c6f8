import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { connect, RcpError, type Client, type StdioTarget } from '../../src/client/index.ts';
import { fixtureCommand } from '../support/harness/process.ts';
import { startServer, type TestServer } from '../support/harness/server.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

async function overHttp(): Promise<{ client: Client; server: TestServer; url: string }> {
  const server = await startServer();
  const { url } = await server.listener();
  const client = await connect(url);
  opened.push(server, client);
  return { client, server, url };
}

const stdioTarget = (): StdioTarget => ({ ...fixtureCommand(['--stdio']), stderr: 'ignore' });

async function overStdio(): Promise<{ client: Client }> {
  const client = await connect(stdioTarget());
  opened.push(client);
  return { client };
}

const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];
// eslint-disable-next-line @typescript-eslint/no-explicit-any
const rejection = async (promise: Promise<unknown>): Promise<any> =>
  promise.then(
    () => null,
    (error: unknown) => error,
  );

describe.each([
  ['HTTP', overHttp],
  ['stdio', overStdio],
])('the client over %s', (_, open: () => Promise<{ client: Client }>) => {
  it('knows what the server offers', async () => {
    const { client } = await open();
    expect(client.capabilities.embed).toMatchObject({ dimension: 4, batchLimit: 4 });
    expect(client.info.server.version).toBeTruthy();
    expect([client.identity('embed'), client.identity('sparseEmbed'), client.identity('rerank', 'none')]).toEqual([
      'fix@1',
      'fix-s@1',
      undefined,
    ]);
  });

  // The queue holds two texts beside the one that runs: most of ten are refused at first, and sent again.
  it('embeds more than one request may hold, on a server that refuses most at first', async () => {
    const { client } = await open();
    const { vectors, identity, usage } = await client.embed(letters, { kind: 'document' });
    expect(vectors.map((vector) => [...vector])).toEqual(letters.map((letter) => [letter.charCodeAt(0), 0, 0, 0]));
    expect([identity, usage.inputTokens, usage.requests]).toEqual(['fix@1', 10, 3]);
  });

  it('gives terms, rows, integers and the order of passages', async () => {
    const { client } = await open();
    expect((await client.sparseEmbed(['aab'])).sparse[0]).toEqual({
      indices: new Uint32Array([97, 98]),
      values: new Float32Array([2, 1]),
    });
    const rows = [new Float32Array([97, 0, 0, 0]), new Float32Array([98, 0, 0, 0])];
    expect((await client.multiVector(['ab'])).matrices).toEqual([rows]);
    expect((await client.embed(['a'], { output: 'ubinary' })).vectors).toEqual([new Uint8Array([0b1000_0000])]);
    const passages = ['c', 'a', 'a b', 'a', 'b', 'a b'];
    const ranked = await client.rerank('a b', passages, { topN: 3 });
    expect([ranked.scores, ranked.order]).toEqual([
      [0, 1, 2, 1, 1, 2],
      [2, 5, 1],
    ]);
  });

  it('answers a ping while a call runs', async () => {
    const { client } = await open();
    const controller = new AbortController();
    const call = rejection(client.embed(['slow:60000'], { signal: controller.signal }));
    expect(await client.ping()).toBeGreaterThanOrEqual(0);
    controller.abort();
    expect((await call).name).toBe('AbortError');
  });

  it('gives back the place in the queue when a call is aborted', async () => {
    const { client } = await open();
    const running = client.embed(['slow:1000']);
    await sleep(100);
    const controller = new AbortController();
    const queued = rejection(client.embed(['a', 'b'], { signal: controller.signal }));
    await sleep(100);
    controller.abort();
    expect((await queued).name).toBe('AbortError');
    await sleep(100);
    // The queue holds two: were the others still there, this one would be refused at first.
    expect((await client.embed(['c'])).usage.retries).toBe(0);
    await running;
  });

  it('reports progress within a request', async () => {
    const { client } = await open();
    const reported: number[] = [];
    await client.embed(['slow:20', 'slow:20'], { onProgress: ({ progress }) => reported.push(progress) });
    expect(reported).toEqual([0.5, 1]);
  });

  it('gives the errors of the server with the index in the whole list', async () => {
    const { client } = await open();
    const boom = await rejection(client.embed(['a', 'boom']));
    expect(boom).toBeInstanceOf(RcpError);
    expect(boom).toMatchObject({ code: -32603, errorName: 'internal', retryable: false, wasSent: true });
    const error = await rejection(client.embed([...letters, 'nan']));
    expect(error).toMatchObject({ code: -32603, data: { field: 'inputs[10]' } });
  });

  it('ends a call at its deadline', async () => {
    const { client } = await open();
    const error = await rejection(client.embed(['slow:4000'], { deadlineMs: 200 }));
    expect(error).toMatchObject({ code: -32014, errorName: 'deadlineExceeded', retryable: true });
  });
});

describe('the client over HTTP', () => {
  it('tells a wrong key from everything else', async () => {
    const server = await startServer({ apiKey: ['a-key-of-sixteen-characters'] });
    opened.push(server);
    const { url } = await server.listener();
    const error = await rejection(connect(url, { apiKey: 'wrong' }));
    expect(error).toMatchObject({ code: -32012, errorName: 'unauthorized', retryable: false });
    const client = await connect(`${url}/rcp`, { apiKey: 'a-key-of-sixteen-characters' });
    expect((await client.embed(['a'])).vectors).toHaveLength(1);
  });

  it('says where it found nobody, after the attempts that it may make', async () => {
    const server = await startServer();
    const { url } = await server.listener();
    await server.close();
    const error = await rejection(connect(url, { retry: { maxAttempts: 2 } }));
    expect(error).toMatchObject({ code: -32010, errorName: 'unavailable', retryable: true });
    expect(error.message).toContain(url);
  });
});

describe('the client over stdio', () => {
  it('says when there is no such command, at once', async () => {
    const error = await rejection(connect({ command: '/nowhere/trivec' }));
    expect(error).toMatchObject({ errorName: 'unavailable', retryable: false });
  });

  it('starts the server again when it has ended, and ends it when it is closed', async () => {
    const script = `
      let rest = '', count = 0;
      const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
      process.stdin.on('data', (chunk) => {
        const lines = (rest + chunk).split('\\n');
        rest = lines.pop();
        for (const line of lines) {
          const { id, method } = JSON.parse(line);
          if (method === 'initialize') say(id, { server: { name: 'x', version: '1' }, capabilities: { embed: { dimension: 1 } } });
          else if (method === 'shutdown') { say(id, {}); process.exit(0); }
          else if (require('fs').existsSync(process.argv[1])) say(id, { vectors: [[1]] });
          else { require('fs').writeFileSync(process.argv[1], ''); process.exit(3); }
        }
      });`;
    const flag = `/tmp/trivec-client-${String(process.pid)}-${String(performance.now())}`;
    const client = await connect({ command: process.execPath, args: ['-e', script, flag], stderr: 'ignore' });
    opened.push(client);
    const { vectors, usage } = await client.embed(['a']);
    expect([[...vectors[0]!], usage.retries]).toEqual([[1], 1]);
  });

  it('reads no line that is longer than allowed', async () => {
    const client = await connect(stdioTarget(), { maxAnswerBytes: 5000 });
    opened.push(client);
    const error = await rejection(client.multiVector(['x'.repeat(2000)]));
    expect(error).toMatchObject({ code: -32013, data: { limit: 5000 } });
  });
});
