/** Owns the promise that what callers send stays between them and the server. */
import fs, { existsSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openHttpClient, type HttpClient } from '../support/harness/http-client.ts';
import { startServer, type TestServer } from '../support/harness/server.ts';
import { openStdioClient } from '../support/harness/stdio-client.ts';

const key = 'geheimer-schluessel';
const methods = [
  'embed',
  'embed/sparse',
  'embed/multi',
  'rerank',
  'ping',
  'info',
  'initialize',
  'shutdown',
  'retrieve',
];
const headerNames = [
  'Accept',
  'User-Agent',
  'RCP-Session',
  'Origin',
  'Host',
  'Cookie',
  'X-Any',
  'Content-Encoding',
  'traceparent',
  'tracestate',
];

/** A text that is found again wherever it ends up. */
const markers = fc.stringMatching(/^zq[a-z0-9]{14}$/);
const wrapped = (marker: string) =>
  fc.constantFrom(marker, `${marker} boom`, `boom ${marker}`, `/etc/${marker}`, `http://127.0.0.1:1/${marker}`);

/** A value of params with the marker somewhere in it. */
const values = (marker: string) =>
  fc.oneof(
    wrapped(marker),
    wrapped(marker).map((text) => [text]),
    wrapped(marker).map((text) => [
      { type: 'text', text },
      { type: text, text: 'a' },
    ]),
    wrapped(marker).map((text) => ({ [text]: text })),
    wrapped(marker).map((uri) => [{ type: 'image', mimeType: 'image/png', uri }]),
  );

const paramNames = [
  ...['inputs', 'texts', 'query', 'passages', 'documents', 'kind', 'encoding', 'method', 'model', 'strict', 'topN'],
  ...['nonce', 'protocolVersion', 'client', 'capabilities', 'x-trivec', '_meta', 'token', 'apiKey'],
];

/** A frame with the marker in its params, its method, its members, or its bytes. */
const frames = (marker: string): fc.Arbitrary<string> => {
  const params = fc.oneof(
    fc.dictionary(fc.constantFrom(...paramNames, marker), values(marker), { minKeys: 1, maxKeys: 5 }),
    wrapped(marker).map((text) => ({ inputs: [text, 'a'] })),
    wrapped(marker).map((text) => ({ inputs: [text, 'boom'] })),
    wrapped(marker).map((text) => ({ query: text, passages: [text] })),
    wrapped(marker).map((text) => ({ inputs: ['a'], 'x-trivec': { model: text, [text]: text, output: text } })),
    wrapped(marker).map((text) => ({
      inputs: ['a'],
      _meta: { progressToken: text, logLevel: text, deadlineMs: text },
    })),
  );
  const single = fc
    .record({
      id: fc.constantFrom<unknown>(1, 2, 'a', marker, { [marker]: 1 }),
      method: fc.constantFrom(...methods, marker),
      params,
    })
    .map((frame) => JSON.stringify({ jsonrpc: '2.0', ...frame }));
  return fc.oneof(
    single,
    fc.array(single, { minLength: 1, maxLength: 10 }).map((texts) => `[${texts.join(',')}]`),
    single.map((text) => text.slice(0, -1)),
    fc.constantFrom(marker, `"${marker}"`, `{"${marker}`, `{"jsonrpc":"2.0","id":1,"method":"${marker}`),
  );
};

/** A call for each outcome that is looked for in the log: whether chance makes one is no rule. */
const certainFrames = (marker: string): string[] =>
  [
    { inputs: [marker, 'a'] },
    { inputs: [marker, 'a'], kind: marker },
    { inputs: [marker, 'a'], encoding: marker },
    { inputs: [marker, 'boom'] },
  ].map((params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'embed', params }));

/** An answer without what it must repeat: ids, the nonce, progress tokens, and a value that is not supported. */
function withoutEchoes(text: string): string {
  return JSON.stringify(JSON.parse(text), (name, value: unknown) =>
    ['id', 'nonce', 'option', 'progressToken'].includes(name) ? null : value,
  );
}

async function metricsOf(client: HttpClient): Promise<string> {
  const { body } = await client.exchange('GET', '/metrics', '', { Authorization: `Bearer ${key}` });
  expect(body).toContain('trivec_calls_total');
  return body;
}

async function onServer(check: (server: TestServer) => Promise<void>): Promise<void> {
  const server = await startServer({ apiKey: [key], corsOrigins: ['https://app.example'] });
  try {
    await check(server);
  } finally {
    await server.close();
  }
}

/** Paths that any function of `fs` is given, until the returned function is called. */
function watchFileSystem(): { readonly paths: string[]; end(): void } {
  const paths: string[] = [];
  const ends = [fs, fs.promises].flatMap((api: object) =>
    Object.entries(api)
      .filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name))
      .map(([name, value]) => {
        const original = value as (...args: unknown[]) => unknown;
        Object.assign(api, {
          [name](this: unknown, ...args: unknown[]) {
            paths.push(...args.slice(0, 2).map(String));
            return original.apply(this, args);
          },
        });
        return () => Object.assign(api, { [name]: original });
      }),
  );
  // What was imported by name follows.
  syncBuiltinESMExports();
  return {
    paths,
    end() {
      for (const end of ends) end();
      syncBuiltinESMExports();
    },
  };
}

describe('a name or a path in a request', () => {
  it('never reaches the file system', async () => {
    await onServer(async (server) => {
      const client = await openHttpClient(server);
      const { paths, end } = watchFileSystem();
      try {
        const names = [
          'zq-model',
          '../../zq-up',
          '/etc/zq-passwd',
          'org/zq-repo@main',
          'file:///zq',
          'C:\\zq',
          'zq\u0000',
        ];
        for (const name of names) {
          for (const method of ['embed', 'embed/sparse', 'embed/multi', 'rerank']) {
            const texts = { inputs: [name], query: name, passages: [name], model: name, method: name, uri: name };
            const frame = { jsonrpc: '2.0', id: 1, method, params: { ...texts, 'x-trivec': { model: name } } };
            const path = `/rcp/${encodeURIComponent(name)}`;
            for (const target of ['/rcp', path]) {
              await client.post(target, JSON.stringify(frame), { Authorization: `Bearer ${key}`, 'RCP-Session': 'zq' });
            }
          }
          await client.exchange('GET', `/health/${encodeURIComponent(name)}`, '', {});
        }
        expect(paths.filter((path) => path.includes('zq'))).toEqual([]);
        existsSync('/zq-seen');
        expect(paths).toContain('/zq-seen');
      } finally {
        end();
        await client.close();
      }
    });
  });
});

describe('what a caller sends', () => {
  it('over HTTP appears in no log, no metric and no error, wherever in the request it stood', async () => {
    await onServer(async (server) => {
      const client = await openHttpClient(server);
      const requests = markers.chain((marker) =>
        fc.record({
          marker: fc.constant(marker),
          frame: frames(marker),
          path: fc.constantFrom('', '', '', '/embed', '/batch', `/${marker}`, `/embed?${marker}`, `/../${marker}`),
          headers: fc.dictionary(fc.constantFrom(...headerNames), fc.constantFrom(marker, `x/${marker}`), {
            maxKeys: 2,
          }),
          authorization: fc.constantFrom(`Bearer ${key}`, `Bearer ${key}`, `Bearer ${marker}`, `Basic ${marker}`),
        }),
      );
      await fc.assert(
        fc.asyncProperty(requests, async ({ marker, frame, path, headers, authorization }) => {
          const answer = await client.post(`/rcp${path}`, frame, { ...headers, Authorization: authorization });
          if (answer.body !== '') expect(withoutEchoes(answer.body)).not.toContain(marker);
          expect(JSON.stringify(answer.headers)).not.toContain(marker);
          expect(server.logText()).not.toContain(marker);
          expect(await metricsOf(client)).not.toContain(marker);
        }),
        {
          numRuns: 300,
          examples: certainFrames('zqexample0000000').map((frame) => [
            { marker: 'zqexample0000000', frame, path: '', headers: {}, authorization: `Bearer ${key}` },
          ]),
        },
      );
      // Calls of every kind were made, and all of them were logged.
      for (const outcome of ['ok', 'invalidParams', 'unsupportedOption', 'internal']) {
        expect(server.logText()).toContain(`"outcome":"${outcome}"`);
      }
      expect(server.logText()).not.toContain(key);
      await client.close();
    });
  });

  it('over stdio appears in no log and no error', async () => {
    await onServer(async (server) => {
      const client = openStdioClient(server);
      const cases = markers.chain((marker) => fc.record({ marker: fc.constant(marker), frame: frames(marker) }));
      await client.ask('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}');
      await fc.assert(
        fc.asyncProperty(cases, async ({ marker, frame }) => {
          const { value } = await client.ask(frame.replaceAll('"shutdown"', '"ping"'));
          expect(withoutEchoes(JSON.stringify(value))).not.toContain(marker);
          expect(server.logText()).not.toContain(marker);
        }),
        { numRuns: 200 },
      );
      await client.close();
    });
  });
});
