import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { createHttpApp } from '../../src/http/app.ts';
import { createFamilies } from '../../src/http/compat/families.ts';
import { identifyEverybody } from '../../src/http/key-ring.ts';
import { createMemoryBudget } from '../../src/http/memory-budget.ts';
import { controlMethods, taskCapabilities } from '../../src/rpc/methods.ts';
import {
  answerProblems,
  examplesOf,
  memberPaths,
  operationsOf,
  requestSchemaOf,
  validatorOf,
  type OpenapiDocument,
  type PlacedOperation,
} from '../support/openapi.ts';
import { recorded } from '../support/recorded-reads.ts';
import { fillQueue } from '../support/harness/full-queue.ts';
import { openHttpClient } from '../support/harness/http-client.ts';
import { startServer, type TestServer } from '../support/harness/server.ts';

const key = 'a-key-that-is-long-enough';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

interface Opened {
  readonly server: TestServer;
  readonly document: OpenapiDocument;
  readonly operations: readonly PlacedOperation[];
}

async function start(settings: Partial<Settings> = {}): Promise<Opened> {
  const server = await startServer(settings);
  opened.unshift(server);
  const document = JSON.parse((await send(server, 'GET', '/openapi.json')).text) as OpenapiDocument;
  return { server, document, operations: operationsOf(document) };
}

async function send(server: TestServer, method: string, path: string, body?: string, headers = {}) {
  const { port } = await server.listener();
  const url = `http://127.0.0.1:${port}${path.replace('{id}', 'fix@1')}`;
  const sent = { 'Content-Type': 'application/json', ...headers };
  const init = body === undefined ? { method, headers } : { method, headers: sent, body };
  const answer = await fetch(url, init);
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

const nameOf = ({ method, path }: PlacedOperation) => `${method} ${path}`;

/** What is wrong with the answers of these operations to one body each; those without a body get none. */
async function problemsOf(
  { server, document }: Opened,
  operations: readonly PlacedOperation[],
  bodyOf: (operation: PlacedOperation) => string,
  expected: (status: number, text: string) => boolean,
  headers = {},
): Promise<string[]> {
  const problems: string[] = [];
  for (const each of operations) {
    const body = each.method === 'POST' ? bodyOf(each) : undefined;
    const answer = await send(server, each.method, each.path, body, headers);
    const found = answerProblems(document, each, answer);
    if (!expected(answer.status, answer.text)) found.push(`${answer.status} ${answer.text.slice(0, 300)}`);
    problems.push(...found.map((problem) => `${nameOf(each)}: ${problem}`));
  }
  return problems;
}

const posts = (operations: readonly PlacedOperation[]) => operations.filter(({ method }) => method === 'POST');
const isRcp = ({ path }: Pick<PlacedOperation, 'path'>) => path.startsWith('/rcp');
const firstExample = ({ operation }: PlacedOperation) => JSON.stringify(examplesOf(operation)[0]);

describe('which routes the description has', () => {
  it('exactly the paths that are registered', async () => {
    const { server, document } = await start();
    const { service, parts } = server;
    const families = createFamilies(parts.settings);
    const app = createHttpApp({
      service: service.frames,
      sessions: service.sessions,
      readiness: () => service.devices.readiness(),
      metricsText: () => '',
      limits: { bodyBytes: 1, bodyTimeoutMs: 1 },
      memory: createMemoryBudget(1),
      identify: identifyEverybody,
      corsOrigins: [],
      allowedHosts: null,
      isLoopbackBind: true,
      metricsOpen: false,
      isDraining: () => false,
      log: parts.log,
      openapi: Buffer.from('{}'),
      compat: { families, run: service.run, countCall: service.countCall, served: service.served },
    });
    const registered = new Set(app.routes.map(({ path }) => path).filter((path) => path !== '/*' && path !== '*'));
    const described = Object.keys(document.paths).map((path) =>
      path.startsWith('/rcp') ? '/rcp/*' : path.replace(/\{\w+\}/, '*'),
    );
    expect([...new Set(described)].sort()).toEqual([...registered].sort());
  });

  it('exactly the methods that a path answers, as its Allow says', async () => {
    const { server, document } = await start();
    for (const [path, item] of Object.entries(document.paths)) {
      const { status, headers } = await send(server, 'DELETE', path);
      expect(status).toBe(405);
      const allowed = (headers.get('allow') ?? '').split(', ').filter((method) => method !== 'OPTIONS');
      const described = Object.keys(item).flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : ['POST']));
      expect({ path, methods: described.sort() }).toEqual({ path, methods: allowed.sort() });
    }
  });

  it('exactly the methods of RCP that are offered', async () => {
    const { server, document } = await start();
    const info = await send(server, 'POST', '/rcp/info', '{"jsonrpc":"2.0","id":1,"method":"info"}');
    const { capabilities } = (JSON.parse(info.text) as { result: { capabilities: object } }).result;
    const offered = Object.entries(taskCapabilities).flatMap(([method, name]) =>
      name in capabilities ? [method] : [],
    );
    const expected = ['/rcp', ...['batch', ...controlMethods, ...offered].map((name) => `/rcp/${name}`)];
    expect(
      Object.keys(document.paths)
        .filter((path) => path.startsWith('/rcp'))
        .sort(),
    ).toEqual(expected.sort());
  });
});

describe('what the description says is so', () => {
  it('every example of a request is valid, works, and is answered as described', async () => {
    const all = await start();
    const problems: string[] = [];
    let examples = 0;
    for (const each of posts(all.operations)) {
      const check = validatorOf(all.document, requestSchemaOf(each.operation) ?? { not: {} });
      const values = examplesOf(each.operation);
      if (values.length === 0) problems.push(`${nameOf(each)} has no example`);
      for (const value of values) {
        examples += 1;
        if (!check(value)) problems.push(`${nameOf(each)}: ${JSON.stringify(check.errors)}`);
        const isGood = (status: number, text: string) => status === 200 && !text.includes('"error":{');
        problems.push(...(await problemsOf(all, [each], () => JSON.stringify(value), isGood)));
      }
    }
    expect(problems).toEqual([]);
    expect(examples).toBeGreaterThan(30);
  });

  it('everything that is read answers as described', async () => {
    const all = await start();
    const reads = all.operations.filter(({ method }) => method === 'GET');
    expect(
      await problemsOf(
        all,
        reads,
        () => '',
        (status) => status === 200,
      ),
    ).toEqual([]);
    const model = reads.filter(({ path }) => path === '/v1/models/{id}');
    const none = model.map((each) => ({ ...each, path: '/v1/models/none' }));
    expect(
      await problemsOf(
        all,
        none,
        () => '',
        (status) => status === 404,
      ),
    ).toEqual([]);
    expect(none).toHaveLength(1);
  });

  it.each([
    ['half a body', '{"in'],
    ['a list', '[]'],
    ['members of the wrong type', '{"input":5,"inputs":5,"texts":5,"query":5,"documents":5,"ids":5}'],
    ['empty lists', '{"input":[],"inputs":[],"texts":[],"query":"","documents":[],"ids":[]}'],
    [
      'lists that are too long',
      JSON.stringify(
        Object.fromEntries(
          ['input', 'inputs', 'texts', 'documents'].map((name) => [name, Array.from({ length: 9 }, () => 'a')]),
        ),
      ),
    ],
    ['a body over the limit', `{"input":"${'a'.repeat(70_000)}"}`],
  ])('%s is an error as described on every route', async (_, body) => {
    const all = await start();
    const isError = (status: number, text: string) => status >= 400 || text.includes('"error":{');
    expect(await problemsOf(all, posts(all.operations), () => body, isError)).toEqual([]);
  });

  it.each([
    ['a packed body', 415, { 'Content-Encoding': 'gzip' }],
    ['a page nobody invited', 403, { Origin: 'https://evil.example' }],
  ])('%s is refused as described', async (_, expected, headers) => {
    const all = await start();
    expect(
      await problemsOf(all, posts(all.operations), firstExample, (status) => status === expected, headers),
    ).toEqual([]);
  });

  it('a wrong key is 401 as described on the routes that need one, and on no other', async () => {
    const all = await start({ apiKey: [key] });
    const guarded = all.operations.filter(({ operation }) => operation.security.length > 0);
    const open = all.operations.filter(({ operation }) => operation.security.length === 0);
    const wrong = { Authorization: 'Bearer wrong' };
    expect(await problemsOf(all, guarded, firstExample, (status) => status === 401, wrong)).toEqual([]);
    expect(await problemsOf(all, open, firstExample, (status) => status === 200, wrong)).toEqual([]);
    expect(
      await problemsOf(all, guarded, firstExample, (status) => status === 200, { Authorization: `Bearer ${key}` }),
    ).toEqual([]);
    expect(guarded.length).toBeGreaterThan(20);
  });

  it('overload, a shutdown, a deadline and a failed run are as described', async () => {
    const tasks = ({ operations }: Opened) =>
      posts(operations).filter((each) => !isRcp(each) && !['/tokenize', '/decode'].includes(each.path));
    const full = await start();
    const client = await openHttpClient(full.server);
    opened.unshift(client);
    const waiting = await fillQueue(client, full.server);
    expect(await problemsOf(full, tasks(full), firstExample, (status) => status === 429)).toEqual([]);
    full.server.engine.release();
    await Promise.all(waiting);
    full.server.service.beginDrain();
    expect(await problemsOf(full, tasks(full), firstExample, (status) => status === 503)).toEqual([]);

    const lists = (word: string) => ({ input: word, texts: [word], query: word, documents: [word] });
    const texts = (word: string, { path }: PlacedOperation) => {
      const body = { ...lists(word), input_type: 'search_query' };
      return JSON.stringify(path === '/v2/embed' ? body : { ...body, inputs: word });
    };
    const embedding = (all: Opened) => tasks(all).filter(({ path }) => /embed/.test(path));
    const slow = await start({ deadlineMs: 40 });
    expect(
      await problemsOf(
        slow,
        embedding(slow),
        (each) => texts('slow:120', each),
        (status) => status === 504,
      ),
    ).toEqual([]);
    const broken = await start();
    expect(
      await problemsOf(
        broken,
        embedding(broken),
        (each) => texts('boom', each),
        (status) => [424, 500, 503].includes(status),
      ),
    ).toEqual([]);
  });

  it('with --compat-models=served a name that is not served is 404 as described', async () => {
    const all = await start({ compatModels: 'served' });
    const named = posts(all.operations).filter(({ path }) => /^\/(v1|v2)\/|^\/embeddings$/.test(path));
    const other = ({ operation }: PlacedOperation) =>
      JSON.stringify({ ...(examplesOf(operation)[0] as object), model: 'x' });
    expect(await problemsOf(all, named, other, (status) => status === 404)).toEqual([]);
    expect(named.length).toBeGreaterThan(5);
  });
});

describe('members of requests', () => {
  /**
   * Read from the text of the frame, where what was parsed has lost how it was written; taken and not looked at; or the
   * block that a query may be beside a list of them.
   */
  const unread = [
    ...['params.nonce', 'params._meta.progressToken', 'params.client', 'user', 'params.id'],
    ...['query', 'params.query'].flatMap((query) => [`${query}.type`, `${query}.text`]),
  ];
  /** What tells a response, which nobody asked for, from a call. */
  const ofResponses = new Set(['result', 'error']);

  /** The value, and the value without each of its members, and without each of those of its members. */
  function variantsOf(value: unknown): unknown[] {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [value];
    const entries = Object.entries(value);
    const without = entries.map((left) => Object.fromEntries(entries.filter((entry) => entry !== left)));
    const inside = entries.flatMap(([name, member]) =>
      variantsOf(member)
        .slice(1)
        .map((each) => ({ ...value, [name]: each })),
    );
    return [value, ...without, ...inside];
  }

  async function readsOf(server: TestServer, each: PlacedOperation): Promise<ReadonlySet<string>> {
    const reads = new Set<string>();
    const parse = JSON.parse;
    for (const value of examplesOf(each.operation).flatMap(variantsOf)) {
      const sent = JSON.stringify(value);
      const spy = vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
        const parsed: unknown = parse(text, reviver);
        return text === sent ? recorded(parsed, (path) => reads.add(path.replace(/^\[\]\.?/, ''))) : parsed;
      });
      try {
        await send(server, each.method, each.path, sent);
      } finally {
        spy.mockRestore();
      }
    }
    return reads;
  }

  it('all that a route reads is described, and all that is described is read', async () => {
    const { server, document, operations } = await start();
    const problems: string[] = [];
    for (const each of posts(operations)) {
      const reads = await readsOf(server, each);
      if (reads.size === 0) problems.push(`${nameOf(each)}: nothing was read`);
      const paths = memberPaths(document, requestSchemaOf(each.operation) ?? {}).map((path) =>
        path.replace(/^\[\]\.?/, ''),
      );
      const known = new Set(paths);
      const isKnown = (path: string) =>
        known.has(path) || paths.some((open) => open.endsWith('.*') && path.startsWith(open.slice(0, -1)));
      for (const path of reads)
        if (!isKnown(path) && !(isRcp(each) && ofResponses.has(path))) problems.push(`${nameOf(each)} reads ${path}`);
      // Any frame goes to the bare path: what its method reads is described there.
      if (each.path === '/rcp' || each.path === '/rcp/batch') continue;
      const isUnread = (path: string) =>
        !reads.has(path) && !path.endsWith('*') && !unread.some((one) => path === one || path.startsWith(`${one}.`));
      for (const path of known)
        if (isUnread(path) && !path.includes('[]')) problems.push(`${nameOf(each)} does not read ${path}`);
    }
    expect(problems).toEqual([]);
  });
});

describe('how the description is served', () => {
  it('without a key, to GET and HEAD, to invited pages only, and the same bytes each time', async () => {
    const { server } = await start({ apiKey: [key], corsOrigins: ['https://app.example'] });
    const first = await send(server, 'GET', '/openapi.json');
    expect(first.status).toBe(200);
    expect(first.headers.get('content-type')).toBe('application/json');
    expect((await send(server, 'GET', '/openapi.json')).text).toBe(first.text);
    const head = await send(server, 'HEAD', '/openapi.json');
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([
      200,
      '',
      String(Buffer.byteLength(first.text)),
    ]);
    const invited = await send(server, 'GET', '/openapi.json', undefined, { Origin: 'https://app.example' });
    expect(invited.headers.get('access-control-allow-origin')).toBe('https://app.example');
    expect((await send(server, 'GET', '/openapi.json', undefined, { Origin: 'https://evil.example' })).status).toBe(
      403,
    );
    expect((await send(server, 'POST', '/openapi.json', '{}')).status).toBe(405);
  });

  it('with a key it names no model', async () => {
    const open = await start();
    expect(JSON.stringify(open.document)).toContain('fix@1');
    const guarded = await start({ apiKey: [key] });
    expect(JSON.stringify(guarded.document)).not.toContain('fix@1');
  });
});
