import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { controlMethods, isTaskMethod, methodKind } from '../../../src/rpc/methods.ts';
import { createFakeScheduler } from '../task/fakes.ts';
import { allTasks, createHarness, stdioSession, type Answer } from './harness.ts';

const notOffered = [
  ...['retrieve', 'query/transform', 'graph', 'index/add', 'index/delete', 'catalog/list', 'feedback'],
  ...['memory/build', 'memory/recall'],
];
const undefinedMethods = [
  ...['does/not/exist', 'embed/', 'embed/foo', 'Embed', 'PING', ' ping', '', 'rcp.discover', 'x-acme/foo'],
  ...['notifications/progress', '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'],
];
const taskMethods = ['embed', 'embed/sparse', 'embed/multi', 'rerank'];
const codeOf = (answer: Answer) => answer.error?.code;
const image = { type: 'image', mimeType: 'image/png', data: 'AAAA' };
const five = ['a', 'b', 'c', 'd', 'e'];

describe('the kind of a method', () => {
  it.each(undefinedMethods)('%j is undefined', (name) => {
    expect(methodKind(name)).toBe('undefined');
  });

  it.each(notOffered)('%s is defined and never offered', (name) => {
    expect(methodKind(name)).toBe('notOffered');
  });

  it.each(controlMethods)('%s needs no model', (name) => {
    expect(methodKind(name)).toBe('control');
  });

  it.each(taskMethods)('%s runs a model', (name) => {
    expect(isTaskMethod(name)).toBe(true);
  });
});

describe('the first condition that matches answers', () => {
  const overBatchLimit = { inputs: five };
  const rules: readonly (readonly [step: string, method: string, params: unknown, code: number, field?: string])[] = [
    ['undefined before params', 'does/not/exist', [], -32004],
    ['not advertised before params', 'retrieve', [], -32003],
    ['params that are no object', 'embed', [], -32602, 'params'],
    ['a missing field before an option', 'embed', { encoding: 'x' }, -32602, 'inputs'],
    ['a wrong type before an option', 'embed', { inputs: ['a'], kind: 'x', encoding: 'x' }, -32602, 'kind'],
    ['an option before a limit', 'embed', { ...overBatchLimit, encoding: 'x' }, -32005, 'encoding'],
    [
      'a vendor option before a limit',
      'embed',
      { ...overBatchLimit, 'x-trivec': { output: 'x' } },
      -32005,
      'x-trivec.output',
    ],
    [
      'dimensions before a limit',
      'embed',
      { ...overBatchLimit, 'x-trivec': { dimensions: 2 } },
      -32005,
      'x-trivec.dimensions',
    ],
    ['a modality before a limit', 'embed', { inputs: [...five, image] }, -32005, 'inputs[5].type'],
    ['a wrong type before a limit', 'embed', { inputs: [...five, 1] }, -32602, 'inputs[5]'],
    ['a limit before the deadline', 'embed', { ...overBatchLimit, _meta: { deadlineMs: 0 } }, -32602, 'inputs'],
    [
      'dimensions before the deadline',
      'embed',
      { inputs: ['a'], 'x-trivec': { dimensions: 2 }, _meta: { deadlineMs: 0 } },
      -32005,
      'x-trivec.dimensions',
    ],
    ['the deadline before the queue', 'embed', { inputs: ['a'], _meta: { deadlineMs: 0 } }, -32014],
    ['the queue', 'embed', { inputs: ['a'] }, -32011],
    [
      'sparse: an option before a limit',
      'embed/sparse',
      { texts: five, 'x-trivec': { priority: 'x' } },
      -32005,
      'x-trivec.priority',
    ],
    ['sparse: a limit', 'embed/sparse', { texts: five }, -32602, 'texts'],
    ['sparse: missing', 'embed/sparse', {}, -32602, 'texts'],
    ['multi: an option before a limit', 'embed/multi', { ...overBatchLimit, encoding: 'x' }, -32005, 'encoding'],
    [
      'multi: rows are never cut',
      'embed/multi',
      { inputs: ['a'], 'x-trivec': { dimensions: 2 } },
      -32005,
      'x-trivec.dimensions',
    ],
    ['multi: a limit', 'embed/multi', overBatchLimit, -32602, 'inputs'],
    ['rerank: query', 'rerank', {}, -32602, 'query'],
    ['rerank: passages', 'rerank', { query: 'q' }, -32602, 'passages'],
    ['rerank: topN', 'rerank', { query: 'q', passages: [], topN: 0 }, -32602, 'topN'],
    ['rerank: a method of another type', 'rerank', { query: 'q', passages: [], method: 5 }, -32602, 'method'],
    ['rerank: a method before a limit', 'rerank', { query: 'q', passages: five, method: 'llm' }, -32005, 'method'],
    ['rerank: a model before a limit', 'rerank', { query: 'q', passages: five, model: 'nope' }, -32005, 'model'],
    ['rerank: a limit', 'rerank', { query: 'q', passages: five }, -32602, 'passages'],
    ['rerank: a limit of the synonym', 'rerank', { query: 'q', documents: five }, -32602, 'documents'],
  ];

  const rows = rules.map(([step, method, params, code, field]) => ({ step, method, params, code, field }));

  it.each(rows)('$step: $method', async ({ method, params, code, field }) => {
    const { call, scheduler } = createHarness();
    scheduler.refuse(new ServiceError('overloaded', 'full', { retryAfterMs: 70 }));
    const answer = await call(method, params);
    expect(codeOf(answer)).toBe(code);
    expect(answer.error?.data['field']).toBe(field);
    expect(scheduler.jobs).toEqual([]);
  });

  it.each([...taskMethods, ...notOffered, ...undefinedMethods])('%j before initialize is -32001', async (method) => {
    const { call } = createHarness();
    const answer = await call(method, [], { session: stdioSession(false) });
    expect(answer.error).toMatchObject({ code: -32001, data: { retryable: true } });
  });

  it.each(controlMethods)('%s works before initialize', async (method) => {
    const { call } = createHarness();
    expect((await call(method, {}, { session: stdioSession(false) })).result).toBeDefined();
  });

  it('a path that names another method goes before everything, for notifications without a word', async () => {
    const { call, ask, scheduler } = createHarness();
    for (const method of ['ping', 'does/not/exist', 'embed', 'notifications/cancel']) {
      expect(codeOf(await call(method, [], { pathMethod: 'info' }))).toBe(-32600);
    }
    expect((await call('ping', {}, { pathMethod: 'ping' })).result).toEqual({});
    expect(await ask('{"method":"embed","params":{"inputs":["a"]}}', { pathMethod: 'ping' })).toBeUndefined();
    expect(scheduler.jobs).toEqual([]);
  });

  it('a cancel with an id is malformed, initialized or not', async () => {
    const { call } = createHarness();
    expect(codeOf(await call('notifications/cancel', { id: 1 }, { session: stdioSession(false) }))).toBe(-32600);
    expect(codeOf(await call('notifications/cancel', { id: 1 }))).toBe(-32600);
  });

  it.each(taskMethods)('%s without a model is not advertised', async (method) => {
    const { call } = createHarness({ embed: [], sparseEmbed: [], multiVector: [], rerankers: [] });
    expect(codeOf(await call(method, {}))).toBe(-32003);
  });
});

describe('a call', () => {
  const params = { inputs: ['a'] };

  it('over an advertised limit learns the limit and what came', async () => {
    const { call } = createHarness();
    expect((await call('embed', { inputs: five })).error?.data).toEqual({
      field: 'inputs',
      limit: 4,
      received: 5,
      retryable: false,
    });
    expect((await call('embed', { inputs: five.slice(1) })).result?.['vectors']).toHaveLength(4);
  });

  it('that the queue refuses tells when to come back, in the body and to the transport', async () => {
    const { reply, scheduler } = createHarness();
    scheduler.refuse(new ServiceError('overloaded', 'full', { retryAfterMs: 70 }));
    const text = '{"id":"k1","method":"embed","params":{"inputs":["a"]}}';
    const { body, retryAfterMs } = await reply(text);
    expect(retryAfterMs).toBe(70);
    expect(JSON.parse(body?.toString() ?? '')).toMatchObject({
      id: 'k1',
      error: { code: -32011, data: { retryAfterMs: 70, retryable: true } },
    });
  });

  it('ends at its deadline on the clock, once, and takes its timer with it', async () => {
    const { call, scheduler, clock, records } = createHarness();
    scheduler.hang();
    const answer = call('embed', { ...params, _meta: { deadlineMs: 100 } });
    await clock.advance(99);
    expect(records).toHaveLength(0);
    await clock.advance(1);
    expect((await answer).error).toMatchObject({ code: -32014, data: { retryable: true } });
    await clock.advance(10_000);
    expect(records).toMatchObject([{ outcome: 'deadlineExceeded', latencyMs: 100 }]);
    expect(clock.pendingTimers()).toBe(0);
    expect(scheduler.releaseCount()).toBe(1);
  });

  it.each([
    [undefined, 5000],
    [1e9, 5000],
    ['5', 5000],
    [null, 5000],
    [{}, 5000],
    [70, 70],
    [0.5, 1],
  ])('with the deadline %j ends after %d ms', async (deadlineMs, expected) => {
    const { call, scheduler, clock } = createHarness();
    scheduler.hang();
    let isDone = false;
    void call('embed', { ...params, _meta: { deadlineMs } }).then(() => (isDone = true));
    await clock.advance(expected - 1);
    expect(isDone).toBe(false);
    await clock.advance(1);
    expect(isDone).toBe(true);
  });

  it.each([0, -5])('with the deadline %d computes nothing', async (deadlineMs) => {
    const { call, scheduler } = createHarness();
    expect(codeOf(await call('embed', { ...params, _meta: { deadlineMs } }))).toBe(-32014);
    expect(scheduler.loads).toEqual([]);
  });

  it('is ended by a cancel with its id, type-exact, and leaves no timer', async () => {
    const { ask, scheduler, clock, records } = createHarness();
    scheduler.hang();
    const session = stdioSession(true);
    const answer = ask('{"id":7,"method":"embed","params":{"inputs":["a"]}}', { session });
    expect(await ask('{"method":"notifications/cancel","params":{"id":"7"}}', { session })).toBeUndefined();
    await clock.advance(1);
    expect(records).toHaveLength(0);
    expect(await ask('{"method":"notifications/cancel","params":{"id":7,"reason":"x"}}', { session })).toBeUndefined();
    expect(await answer).toMatchObject({ id: 7, error: { code: -32006, data: { retryable: false } } });
    expect(clock.pendingTimers()).toBe(0);
  });

  it('is not ended by a cancel that came on the path of another method', async () => {
    const { ask, scheduler, records, clock } = createHarness();
    scheduler.hang();
    const session = stdioSession(true);
    void ask('{"id":7,"method":"embed","params":{"inputs":["a"]}}', { session });
    await ask('{"method":"notifications/cancel","params":{"id":7}}', { session, pathMethod: 'embed' });
    await clock.advance(1);
    expect(records).toHaveLength(0);
  });

  it('is known to its session while it is in flight and no longer, however it ends', async () => {
    const { call, scheduler } = createHarness();
    const session = stdioSession(true);
    const register = session.register.bind(session);
    let openCount = 0;
    let registeredCount = 0;
    session.register = (...registered) => {
      const close = register(...registered);
      openCount += 1;
      registeredCount += 1;
      return () => {
        openCount -= 1;
        close();
      };
    };
    await call('embed', params, { session });
    scheduler.refuse(new ServiceError('overloaded', 'full'));
    await call('embed', params, { session });
    expect([registeredCount, openCount]).toEqual([2, 0]);
  });

  it('is not ended by a cancel from another session', async () => {
    const { ask, scheduler, records, clock } = createHarness();
    scheduler.hang();
    void ask('{"id":7,"method":"embed","params":{"inputs":["a"]}}');
    await ask('{"method":"notifications/cancel","params":{"id":7}}');
    await clock.advance(1);
    expect(records).toHaveLength(0);
  });

  it('ends when its caller is gone, before or while it runs', async () => {
    const { call, scheduler, clock } = createHarness();
    scheduler.hang();
    const controller = new AbortController();
    const answer = call('embed', params, { signal: controller.signal });
    await clock.advance(1);
    controller.abort();
    expect(codeOf(await answer)).toBe(-32006);
    expect(codeOf(await call('embed', params, { signal: controller.signal }))).toBe(-32006);
    expect(scheduler.jobs).toHaveLength(1);
  });

  it('that meets a bug is answered without detail, and the bug is reported once', async () => {
    const bug = new TypeError('secret detail at /home/x.ts');
    const scheduler = createFakeScheduler(() => {
      throw bug;
    });
    const { call, records } = createHarness(allTasks(), scheduler);
    const answer = await call('embed', params);
    expect(answer.error).toEqual({ code: -32603, message: 'The server failed', data: { retryable: false } });
    expect(records).toMatchObject([{ method: 'embed', outcome: 'internal', transport: 'http', latencyMs: 0, bug }]);
    expect((await call('ping')).result).toEqual({});
  });

  it('is refused while the server ends, but control methods still answer', async () => {
    const { call, drain } = createHarness();
    drain();
    expect((await call('embed', params)).error).toMatchObject({ code: -32010, data: { retryable: true } });
    expect((await call('ping')).result).toEqual({});
  });

  it('is counted once under its method, unknown names together', async () => {
    const { call, records } = createHarness();
    await call('ping');
    await call('x'.repeat(1000));
    await call('retrieve');
    expect(records.map(({ method, outcome }) => [method, outcome])).toEqual([
      ['ping', 'ok'],
      ['undefined', 'methodNotFound'],
      ['retrieve', 'capabilityNotAdvertised'],
    ]);
  });

  it('keeps its id through every class of error', async () => {
    const { ask, scheduler } = createHarness();
    for (const name of ['unavailable', 'overloaded', 'internal', 'tooLarge', 'deadlineExceeded'] as const) {
      scheduler.refuse(new ServiceError(name, 'x'));
      expect(await ask('{"id":"k1","method":"embed","params":{"inputs":["a"]}}')).toMatchObject({ id: 'k1' });
    }
  });

  it('never has the text of its input in an error', async () => {
    const { call } = createHarness();
    for (const bad of [
      { inputs: ['geheim', 1] },
      { inputs: ['geheim'.repeat(9)], 'x-trivec': { truncate: false } },
      { inputs: 'geheim' },
    ]) {
      expect(JSON.stringify((await call('embed', bad)).error)).not.toContain('geheim');
    }
  });
});

describe('progress and log', () => {
  const withToken = (token: string) =>
    `{"id":1,"method":"embed","params":{"inputs":["a","b","c","d"],"_meta":{"progressToken":${token}}}}`;

  it('frames come before the answer, with the raw token, and stop there', async () => {
    const { ask, notifications, clock } = createHarness();
    await ask(withToken('9007199254740993'));
    const before = [...notifications];
    await clock.advance(1000);
    expect(notifications).toEqual(before);
    expect(before).toHaveLength(4);
    for (const frame of before) expect(frame).toContain('"progressToken":9007199254740993,');
  });

  it.each(['{}', 'true', '1.5', 'null', '[]'])('a token of %s sends nothing and fails nothing', async (token) => {
    const { ask, notifications } = createHarness();
    expect(await ask(withToken(token))).toHaveProperty('result');
    expect(notifications).toEqual([]);
  });

  it('log entries go to stdio only, and only where asked for', async () => {
    const { call, notifications } = createHarness();
    const params = { _meta: { logLevel: 'debug' } };
    await call('info', params);
    await call('info', {}, { transport: 'stdio' });
    expect(notifications).toEqual([]);
    await call('info', params, { transport: 'stdio' });
    expect(notifications.map((frame) => JSON.parse(frame) as unknown)).toMatchObject([
      { method: 'notifications/log', params: { level: 'info', data: { method: 'info', outcome: 'ok' } } },
    ]);
  });
});

describe('a notification', () => {
  it.each(['ping', 'info', 'embed', 'retrieve', 'does/not/exist', 'notifications/x', 'initialize'])(
    'that names %s gets no answer, runs nothing and changes nothing',
    async (method) => {
      const { ask, scheduler, records } = createHarness();
      const session = stdioSession(false);
      const text = JSON.stringify({ method, params: { inputs: ['a'], protocolVersion: 1 } });
      expect(await ask(text, { session })).toBeUndefined();
      expect([scheduler.loads, records]).toEqual([[], []]);
      expect(session.isInitialized).toBe(false);
    },
  );

  it('of shutdown ends stdio and nothing over HTTP', async () => {
    const { reply } = createHarness();
    const text = '{"method":"shutdown"}';
    expect(await reply(text, { transport: 'stdio' })).toMatchObject({ body: null, isShutdown: true });
    expect(await reply(text, { transport: 'http' })).toMatchObject({ body: null, isShutdown: false });
  });

  it.each(['{}', '{"id":null}', '{"id":{}}', '[]', '5'])('of cancel with the params %s is a no-op', async (params) => {
    const { ask } = createHarness();
    expect(await ask(`{"method":"notifications/cancel","params":${params}}`)).toBeUndefined();
  });
});
