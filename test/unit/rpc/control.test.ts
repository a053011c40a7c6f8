import { describe, expect, it } from 'vitest';
import { createSessionStore } from '../../../src/rpc/session.ts';
import { createServed } from '../task/fakes.ts';
import { allTasks, createHarness, stdioSession, type Answer } from './harness.ts';

const allRows = { skippedIds: [], keepsFirstRow: true };
const modelOf = (id: string, maxInputTokens: number, dimension?: number) => ({
  id,
  identity: `${id}@r`,
  maxInputTokens,
  ...(dimension === undefined ? {} : { dimension }),
});

const codeOf = (answer: Answer) => answer.error?.code;

describe('ping', () => {
  it.each(['777', '"x"', '0', '""', '1.5', '9007199254740993', '1e400', '"a\\nb"', '"\\u2028"'])(
    'echoes the nonce %s as it was written',
    async (nonce) => {
      const { body } = await createHarness().reply(`{"id":1,"method":"ping","params":{"nonce":${nonce}}}`);
      expect(body?.toString()).toBe(`{"jsonrpc":"2.0","id":1,"result":{"nonce":${nonce}}}`);
    },
  );

  it.each(['{}', 'null', '{"nonce":null}'])('with the params %s answers with nothing', async (params) => {
    const { body } = await createHarness().reply(`{"id":1,"method":"ping","params":${params}}`);
    expect(body?.toString()).toBe('{"jsonrpc":"2.0","id":1,"result":{}}');
  });

  it.each(['{}', '[]', 'true', `${'['.repeat(20_000)}${']'.repeat(20_000)}`])(
    'refuses a nonce of another type and echoes nothing of it',
    async (nonce) => {
      const answer = await createHarness().ask(`{"id":1,"method":"ping","params":{"nonce":${nonce}}}`);
      expect(answer).toMatchObject({ id: 1, error: { code: -32602, data: { field: 'nonce' } } });
    },
  );
});

describe('initialize', () => {
  const initialize = (params: unknown, session = stdioSession(false)) =>
    createHarness().call('initialize', params, { session });

  it.each([undefined, null, {}, { protocolVersion: null }, { protocolVersion: 1 }, { protocolVersion: 99 }])(
    'with %j speaks version 1',
    async (params) => {
      const session = stdioSession(false);
      expect((await initialize(params, session)).result).toMatchObject({
        protocolVersion: 1,
        _meta: { conformance: 'L0' },
      });
      expect(session.isInitialized).toBe(true);
    },
  );

  it.each([
    [0, -32002],
    [-1, -32002],
    ['1.0', -32602],
    ['1', -32602],
    [1.5, -32602],
    [true, -32602],
    [[1], -32602],
  ])('refuses the version %j with %d and unlocks nothing', async (protocolVersion, code) => {
    const session = stdioSession(false);
    expect((await initialize({ protocolVersion }, session)).error).toMatchObject({
      code,
      data: { field: 'protocolVersion' },
    });
    expect(session.isInitialized).toBe(false);
    expect((await initialize({ protocolVersion: 1 }, session)).result).toBeDefined();
  });

  it.each([{ 'x-acme': 1, streaming: {} }, null, 5, []])('takes any capabilities (%j)', async (capabilities) => {
    expect((await initialize({ capabilities })).result).toBeDefined();
  });

  it('a second time is refused even with bad params, and the session stays usable', async () => {
    const { call } = createHarness();
    const session = stdioSession(false);
    await call('initialize', {}, { session });
    expect(codeOf(await call('initialize', { protocolVersion: 0 }, { session }))).toBe(-32600);
    expect((await call('embed', { inputs: ['a'] }, { session })).result).toBeDefined();
  });

  it('over HTTP may be repeated, and hands out a token each time', async () => {
    const { call } = createHarness();
    const store = createSessionStore('stateless');
    const tokenOf = async () => {
      const { result } = await call('initialize', {}, { session: store.ofHttp(undefined) });
      return (result?.['_meta'] as { session: string }).session;
    };
    const [a, b] = [await tokenOf(), await tokenOf()];
    expect(a).not.toBe(b);
    expect(codeOf(await call('initialize', {}, { session: store.ofHttp(a) }))).toBe(-32600);
  });

  it.each([
    [{ capabilities: { log: {} } }, 'info'],
    [{ _meta: { logLevel: 'error' } }, 'error'],
    [{ _meta: { logLevel: 'error' }, capabilities: { log: {} } }, 'error'],
    [{ _meta: { logLevel: 'loud' } }, null],
    [{ capabilities: {} }, null],
    [{ capabilities: { log: null } }, null],
  ])('with %j opts in to the log level %j', async (params, level) => {
    const session = stdioSession(false);
    await initialize(params, session);
    expect(session.logLevel).toBe(level);
  });
});

describe('info', () => {
  it('is the same before and after initialize, and equals its result', async () => {
    const { call } = createHarness();
    const session = stdioSession(false);
    const before = await call('info', {}, { session });
    const initialized = await call('initialize', {}, { session });
    expect(initialized.result).toEqual(before.result);
    expect(await call('info', { any: 'thing' }, { session })).toEqual(before);
  });

  it('advertises each task as the protocol spells it', async () => {
    const { result } = await createHarness().call('info');
    const modalities = ['text'];
    const encodings = ['json', 'f32-base64'];
    expect(result?.['capabilities']).toEqual({
      embed: { dimension: 4, identity: 'dense@r', normalized: true, encodings, batchLimit: 4, modalities },
      sparseEmbed: { identity: 'sparse@r', vocabulary: 256, batchLimit: 4, modalities },
      multiVector: { dimension: 4, identity: 'tokens@r', similarity: 'dot', encodings, batchLimit: 4, modalities },
      rerank: {
        methods: ['cross-encoder', 'colbert'],
        maxCandidates: 4,
        models: ['pairs', 'tokens'],
        identity: 'pairs@r',
      },
      streaming: {},
      log: { levels: ['debug', 'info', 'notice', 'warning', 'error'] },
    });
  });

  it('leaves out what is not configured, and nothing is null', async () => {
    const tasks = { embed: [createServed()], sparseEmbed: [], multiVector: [], rerankers: [] };
    const { result } = await createHarness(tasks).call('info');
    expect(Object.keys(result?.['capabilities'] as object)).toEqual(['embed', 'streaming', 'log']);
    expect(JSON.stringify(result)).not.toContain('null');
  });

  it('shows limits, options and the tokens of each task, that of the default reranker included', async () => {
    const tasks = allTasks();
    const short = createServed({ maxTokens: 8 });
    const { result } = await createHarness({ ...tasks, rerankers: [{ method: 'colbert', served: short }] }).call(
      'info',
    );
    expect(result?.['x-trivec']).toEqual({
      devices: [],
      unusedDevices: [],
      maxInputTokens: { embed: 16, sparseEmbed: 16, multiVector: 16, rerank: 8 },
      limits: { batchMembers: 8, bodyBytes: 65_536, deadlineMs: 5000 },
      models: {
        embed: ['dense', 'dense-2'].map((id) => ({ ...modelOf(id, 16, 4), matryoshka: false })),
        sparseEmbed: [modelOf('sparse', 16)],
        multiVector: [{ ...modelOf('tokens', 16, 4), rowTokens: { query: allRows, document: allRows } }],
        rerank: [{ method: 'colbert', ...modelOf('m', 8) }],
      },
      options: ['truncate', 'dimensions', 'priority', 'output', 'model'],
    });
  });
});

describe('shutdown', () => {
  it('is answered with nothing and told to the transport', async () => {
    const { reply } = createHarness();
    const { body, isShutdown } = await reply('{"id":1,"method":"shutdown"}', { session: stdioSession(false) });
    expect(body?.toString()).toBe('{"jsonrpc":"2.0","id":1,"result":{}}');
    expect(isShutdown).toBe(true);
  });

  it('that is malformed is not obeyed', async () => {
    const { reply } = createHarness();
    expect(await reply('{"id":1,"method":"shutdown","params":[]}')).toMatchObject({ isShutdown: false });
  });

  it('resets the one session that all HTTP callers share, so that it can be initialized again', async () => {
    const { call } = createHarness();
    const session = createSessionStore('single').ofHttp(undefined);
    await call('initialize', {}, { session });
    await call('shutdown', {}, { session });
    expect(codeOf(await call('embed', { inputs: ['a'] }, { session }))).toBe(-32001);
    expect((await call('initialize', {}, { session })).result).toBeDefined();
  });
});
