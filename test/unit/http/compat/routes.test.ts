import { afterEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../../../src/errors.ts';
import type { CompatCall, CompatFamily, CompatRoute } from '../../../../src/http/compat/family.ts';
import type { CompatParts } from '../../../../src/http/compat/routes.ts';
import { routeTable } from '../../../../src/http/compat/route-table.ts';
import { jinaFamily } from '../../../../src/http/compat/jina.ts';
import { createMemoryBudget } from '../../../../src/http/memory-budget.ts';
import type { ResultOf } from '../../../../src/rpc/task-request.ts';
import { createHarnesses, onlyWith, parseAnswer, post, request } from '../harness.ts';

const harnesses = createHarnesses();
afterEach(() => harnesses.closeAll());

const told = (name: string) => (): { status: number; body: string } => ({ status: 200, body: `"${name}"` });
const route = (path: string, answer: CompatRoute['answer'], rest: Partial<CompatRoute> = {}): CompatRoute => ({
  method: 'POST',
  path,
  answer,
  ...rest,
});

function family(name: CompatFamily['name'], routes: readonly CompatRoute[]): CompatFamily {
  return {
    name,
    routes,
    errorAnswer: ({ errorName, data }) => ({ status: 418, body: JSON.stringify({ name, errorName, ...data }) }),
  };
}

const hasTexts = (body: unknown) => typeof body === 'object' && body !== null && 'texts' in body;
const times = { tokenizeMs: 1, queueMs: null, runMs: 2, totalMs: 3 };
const embedding = {
  method: 'embed',
  inputs: { values: ['a'], field: 'input' },
  kind: null,
  model: null,
  truncation: null,
  lane: null,
  dimensions: null,
} as const;

/** Families whose runs end at once. */
const partsOf = (...families: readonly CompatFamily[]): CompatParts => ({
  families,
  run: async (_request, _context, onTimes) => {
    onTimes?.(times);
    return {} as ResultOf<never>;
  },
  countCall: () => undefined,
  served: { limits: { deadlineMs: 1000 } } as CompatParts['served'],
});

const callTo = async (options: Parameters<typeof harnesses.start>[0], bytes: Buffer) => {
  const harness = await harnesses.start(options);
  const answer = await harness.exchange(bytes);
  return { harness, answer };
};

describe('the table of routes', () => {
  it('is complete: every path once, with its methods, names last', () => {
    const named = route('/m/:id', told('one'), { method: 'GET' });
    const table = routeTable([
      family('openai', [named, route('/m', told('all'), { method: 'GET' })]),
      family('tei', [route('/rerank', told('tei'))]),
      family('jina', [route('/rerank', told('jina'))]),
    ]);
    expect(table.map(({ path, methods }) => [path, ...methods])).toEqual([
      ['/m', 'GET', 'HEAD'],
      ['/rerank', 'POST'],
      ['/m/:id', 'GET', 'HEAD'],
    ]);
  });
});

describe('a path of several families', () => {
  const compat = partsOf(
    family('jina', [route('/rerank', told('jina'))]),
    family('tei', [route('/rerank', told('tei'), { takes: hasTexts })]),
  );

  it.each([
    ['{"texts":[]}', '"tei"'],
    ['{"documents":[]}', '"jina"'],
    ['{"texts":1,"documents":2}', '"tei"'],
    ['{}', '"jina"'],
    ['5', '"jina"'],
  ])('%s is answered by %s', async (body, expected) => {
    const { answer } = await callTo({ compat }, post('/rerank', body));
    expect([answer.status, answer.body]).toEqual([200, expected]);
  });

  it.each([
    ['a body that is no JSON', post('/rerank', '{'), 'parse'],
    ['a body nested too deep to be written', post('/rerank', `${'['.repeat(257)}${']'.repeat(257)}`), 'invalidRequest'],
    ['a wrong method', request('PUT', '/rerank'), 'invalidRequest'],
  ])('before the body is known the first family speaks: %s', async (_, bytes, errorName) => {
    const { answer } = await callTo({ compat }, bytes);
    expect(JSON.parse(answer.body)).toEqual({ name: 'jina', errorName });
  });

  it('the family that took the call also answers its error', async () => {
    const fails = () => {
      throw new ServiceError('overloaded', 'full', { retryAfterMs: 1 });
    };
    const tei = family('tei', [route('/rerank', fails, { takes: hasTexts })]);
    const { answer } = await callTo({ compat: partsOf(family('jina', []), tei) }, post('/rerank', '{"texts":[]}'));
    expect(JSON.parse(answer.body)).toEqual({ name: 'tei', errorName: 'overloaded', retryAfterMs: 1 });
  });
});

describe('a call of a compatible route', () => {
  const seen = async (path: string, bytes: Buffer, rest: Partial<CompatRoute> = {}) => {
    const calls: CompatCall[] = [];
    const answer = (call: CompatCall) => {
      calls.push(call);
      return { status: 200, body: '{}' };
    };
    const one = family('openai', [route(path, answer, rest)]);
    const result = await callTo({ compat: partsOf(one) }, bytes);
    return { ...result, call: calls[0] };
  };

  it('is given what stands for a name, percent-decoded, whatever is in it', async () => {
    const named = { method: 'GET' } as const;
    expect((await seen('/m/:id', request('GET', '/m/org%2Fa%20b?x=1'), named)).call?.pathName).toBe('org/a b');
    expect((await seen('/m/:id', request('GET', '/m/org/a'), named)).call?.pathName).toBe('org/a');
    expect((await seen('/m/:id', request('GET', '/m/%zz'), named)).call?.pathName).toBe('%zz');
    expect((await seen('/m', post('/m', '[1]'))).call).toMatchObject({ pathName: null, body: [1] });
  });

  it('has no body where it is only read', async () => {
    const { call, answer } = await seen('/m', request('GET', '/m'), { method: 'GET' });
    expect(call?.body).toBeUndefined();
    expect(answer.headers.has('server-timing')).toBe(false);
  });

  it('says where the time of all that it ran went', async () => {
    const twice = async ({ run }: CompatCall) => {
      await run<'embed'>(embedding);
      await run<'embed'>(embedding);
      return { status: 200, headers: { 'X-Own': '1' }, body: '{}' };
    };
    const { answer } = await callTo({ compat: partsOf(family('tei', [route('/e', twice)])) }, post('/e'));
    expect(answer.headers.get('server-timing')).toBe('tokenise;dur=2.0, run;dur=4.0, total;dur=0.0');
    expect(answer.headers.get('x-own')).toBe('1');
  });

  it('that fails for no reason of its caller is internal without detail, and logged', async () => {
    const broken = () => {
      throw new TypeError('sesame');
    };
    const { answer, harness } = await callTo({ compat: partsOf(family('tei', [route('/e', broken)])) }, post('/e'));
    expect(JSON.parse(answer.body)).toEqual({ name: 'tei', errorName: 'internal' });
    expect(harness.errors).toEqual([new TypeError('sesame')]);
  });

  it('is told by its signal that its deadline passed', async () => {
    const waits = ({ signal }: CompatCall) =>
      new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => {
          reject(signal.reason as Error);
        });
      });
    const harness = await harnesses.start({ compat: partsOf(family('tei', [route('/e', waits)])) });
    const connection = await harness.open();
    connection.socket.write(post('/e', '{}', { Connection: 'keep-alive' }));
    while (!connection.text().includes('deadlineExceeded')) {
      await harness.clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(connection.text()).toContain('HTTP/1.1 418');
  });

  it('whose answer finds no memory is told to come back', async () => {
    const large = () => ({ status: 200, body: 'x'.repeat(10_000) });
    const compat = partsOf(family('tei', [route('/e', large)]));
    const { answer, harness } = await callTo({ compat, memory: createMemoryBudget(100) }, post('/e'));
    expect(JSON.parse(answer.body)).toMatchObject({ errorName: 'overloaded', retryAfterMs: 1000 });
    expect(harness.refused).toEqual(['crowded']);
  });

  it("whose body is still on its way when the server leaves is told so in its family's words", async () => {
    const harness = await harnesses.start({ compat: partsOf(jinaFamily) });
    const connection = await harness.open();
    connection.socket.write('POST /rerank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90\r\n\r\n{"query"');
    await harness.exchange(post('/rcp/ping'));
    await harness.close(60_000);
    const answer = parseAnswer(await connection.ended);
    expect([answer.status, answer.headers.get('connection'), answer.headers.get('retry-after')]).toEqual([
      503,
      'close',
      '1',
    ]);
    expect(JSON.parse(answer.body)).toMatchObject({ detail: 'The server is shutting down' });
  });

  it('needs the key, before its body is looked at', async () => {
    const compat = partsOf(family('tei', [route('/e', told('tei'))]));
    const { answer, harness } = await callTo({ compat, identify: onlyWith('key') }, post('/e', '{'));
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(JSON.parse(answer.body)).toMatchObject({ errorName: 'unauthorized' });
    expect(harness.refused).toEqual(['unauthorized']);
  });
});

describe('a path that is also read', () => {
  it('names the methods of both in its 405', async () => {
    const compat = partsOf(family('tei', [route('/', told('tei'))]));
    const file = { body: Buffer.from('page'), contentType: 'text/html', etag: '"1"', headers: {} };
    const consoleFiles = new Map([['/', file]]) as never;
    const { answer } = await callTo({ compat, consoleFiles }, request('DELETE', '/'));
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST, OPTIONS']);
  });
});
